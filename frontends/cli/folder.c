#include "cli/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

/* What a signal or a fatal error must not leave behind: folders that exist now, and the program that runs in one.
 * Fixed storage, as a signal handler may look at nothing else. */
#define MOST_FOLDERS 4
#define LONGEST_PATH 4096

static struct Leftover {
    volatile sig_atomic_t there;
    char path[LONGEST_PATH], made[LONGEST_PATH];
} leftover[MOST_FOLDERS];
static volatile pid_t running;

/* By rm, since a signal handler may start a program but may not read a folder. */
static void remove_leftovers(void)
{
    for (struct Leftover *at = leftover; at < leftover + MOST_FOLDERS; at++) {
        if (!at->there)
            continue;
        at->there = 0;
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/rm", "rm", "-rf", "--", at->path, (char *)NULL);
            _exit(1);
        }
        if (child > 0)
            waitpid(child, NULL, 0);
        if (*at->made)
            rmdir(at->made);
    }
}

static void stop(int signal_number)
{
    if (running > 0) {
        kill(running, SIGTERM);
        waitpid(running, NULL, 0);
    }
    remove_leftovers();
    raise(signal_number); /* the handler was for once: this ends the process as the signal would have */
}

void folder_watch_signals(void)
{
    static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    static bool watching;
    struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND}, before;

    if (watching)
        return;
    watching = true;
    atexit(remove_leftovers);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        sigaddset(&action.sa_mask, watched[i]);
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
        if (sigaction(watched[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* as nohup has it */
            sigaction(watched[i], &action, NULL);
}

static void remember(const Folder *folder)
{
    for (struct Leftover *at = leftover; at < leftover + MOST_FOLDERS; at++)
        if (!at->there) {
            snprintf(at->path, sizeof at->path, STR_FMT, STR_ARG(folder->path));
            snprintf(at->made, sizeof at->made, STR_FMT, STR_ARG(folder->made));
            at->there = folder->path.len < LONGEST_PATH && folder->made.len < LONGEST_PATH;
            return;
        }
}

static void forget(const Folder *folder)
{
    for (struct Leftover *at = leftover; at < leftover + MOST_FOLDERS; at++)
        if (at->there && str_is(folder->path, at->path))
            at->there = 0;
}

typedef bool Visit(void *context, const char *path, const char *name);

static bool each_file(const char *folder, Visit *visit, void *context)
{
    DIR *entries = opendir(folder);
    bool good = entries != NULL;
    for (struct dirent *entry; good && (entry = readdir(entries));) {
        char path[4096];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        good = visit(context, path, entry->d_name);
    }
    if (entries)
        closedir(entries);
    return good;
}

/* A run holds a lock on its folder; one that was killed left a folder that nobody holds. */

#define PREFIX ".nnc-"
#define TRIES  100 /* at a folder that another run takes for abandoned before it is held */

static int hold(const char *path)
{
    int lock = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        return lock;
    int error = errno;
    if (lock >= 0)
        close(lock);
    errno = error;
    return -1;
}

static bool is_of_a_run(const char *name)
{
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && strlen(name) == strlen(PREFIX) + 6;
}

static bool remove_abandoned(void *context, const char *path, const char *name)
{
    struct stat status;
    (void)context;
    if (!is_of_a_run(name) || lstat(path, &status) || !S_ISDIR(status.st_mode))
        return true;
    int lock = hold(path);
    if (lock < 0)
        return true;
    Folder dead = {.path = str_from(path), .lock = lock};
    folder_remove(&dead);
    return true;
}

/* What is held may have been removed by another run just before. */
static bool is_still_there(const char *path, int lock)
{
    struct stat there, held;
    return fstat(lock, &held) == 0 && lstat(path, &there) == 0 && there.st_dev == held.st_dev &&
           there.st_ino == held.st_ino;
}

/* A new folder of that name before six letters, held where the file system knows locks. */
static bool make_held(Cli *cli, Str name, Folder *folder)
{
    for (int i = 0; i < TRIES; i++) {
        folder->path = str_format(&cli->arena, STR_FMT "XXXXXX", STR_ARG(name));
        if (!mkdtemp((char *)(uintptr_t)folder->path.ptr))
            return folder->path = (Str){0}, false;
        folder->lock = hold(folder->path.ptr);
        bool taken = folder->lock < 0 && (errno == EWOULDBLOCK || errno == ENOENT);
        if (!taken && (folder->lock < 0 || is_still_there(folder->path.ptr, folder->lock)))
            return true;
        if (folder->lock >= 0)
            close(folder->lock);
    }
    return errno = EBUSY, folder->path = (Str){0}, false;
}

bool folder_open(Cli *cli, Str parent, Folder *folder)
{
    const char *system = getenv("TMPDIR");
    *folder = (Folder){0};
    if (parent.len && !file_exists(parent))
        folder->made = parent;
    if (parent.len && !file_make_folder(&cli->diag, parent))
        return false;
    if (parent.len)
        each_file(str_copy(&cli->arena, parent).ptr, remove_abandoned, NULL);
    Str name = parent.len ? str_format(&cli->arena, STR_FMT "/" PREFIX, STR_ARG(parent))
                          : str_format(&cli->arena, "%s/nnc-", system && *system ? system : "/tmp");
    if (!make_held(cli, name, folder))
        return diag_file_error(&cli->diag, parent.len ? parent : name, "cannot make a folder: %s", strerror(errno));
    folder_watch_signals();
    remember(folder);
    return true;
}

Str folder_file(Cli *cli, const Folder *folder, Str name)
{
    return str_format(&cli->arena, STR_FMT "/" STR_FMT, STR_ARG(folder->path), STR_ARG(name));
}

/* Commit */

struct FileMove {
    const char *from, *to, *older; /* older: a second name of what stands under `to` */
    bool replaces, done;
};

typedef struct Moves {
    Cli *cli;
    Folder *folder;
    Str parent;
} Moves;

typedef struct Written {
    Cli *cli;
    Str parent, path;
    bool found;
} Written;

static bool find_written(void *context, const char *path, const char *name)
{
    Written *written = context;
    (void)path;
    Str target = str_format(&written->cli->arena, STR_FMT "/%s", STR_ARG(written->parent), name);
    written->found |= file_clash(target, written->path);
    return true;
}

bool folder_writes(Cli *cli, const Folder *folder, Str parent, Str path)
{
    Written written = {cli, parent, path, false};
    each_file(folder->path.ptr, find_written, &written);
    return written.found;
}

/* No file is renamed onto a folder: this is known before anything is. */
static bool prepare_move(void *context, const char *path, const char *name)
{
    Moves *moves = context;
    Arena *arena = &moves->cli->arena;
    Folder *folder = moves->folder;
    struct stat status;
    Str target = str_format(arena, STR_FMT "/%s", STR_ARG(moves->parent), name);
    bool there = lstat(target.ptr, &status) == 0;
    if (there && S_ISDIR(status.st_mode))
        return diag_file_error(&moves->cli->diag, target, "cannot write: %s", strerror(EISDIR));
    FileMove move = {.from = str_copy(arena, str_from(path)).ptr,
                     .to = target.ptr,
                     .older = str_format(arena, STR_FMT "/.older-%s", STR_ARG(folder->path), name).ptr,
                     .replaces = there};
    ARENA_PUSH(arena, folder->move, folder->move_count, folder->move_capacity, move);
    return true;
}

bool folder_commit(Cli *cli, Folder *folder, Str parent)
{
    bool good = each_file(folder->path.ptr, prepare_move, &(Moves){cli, folder, parent});
    for (uint32_t i = 0; good && i < folder->move_count; i++) {
        FileMove *move = &folder->move[i];
        if (move->replaces && link(move->to, move->older))
            move->older = NULL; /* a file system without second names */
        good = rename(move->from, move->to) == 0 ||
               diag_file_error(&cli->diag, str_from(move->to), "cannot write: %s", strerror(errno));
        move->done = good;
    }
    if (!good)
        folder_undo(folder);
    return good;
}

void folder_undo(Folder *folder)
{
    for (uint32_t i = 0; i < folder->move_count; i++) {
        const FileMove *move = &folder->move[i];
        if (!move->done)
            continue;
        if (!move->replaces)
            unlink(move->to);
        else if (move->older)
            rename(move->older, move->to);
    }
    folder->move_count = 0;
}

static bool discard(void *context, const char *path, const char *name)
{
    (void)context, (void)name;
    unlink(path);
    return true;
}

void folder_remove(Folder *folder)
{
    if (!folder->path.len)
        return;
    each_file(folder->path.ptr, discard, NULL);
    rmdir(folder->path.ptr);
    if (folder->lock >= 0)
        close(folder->lock);
    forget(folder);
    if (folder->made.len) {
        char *made = strndup(folder->made.ptr, folder->made.len);
        if (made)
            rmdir(made); /* stays when something else came into it */
        free(made);
    }
    *folder = (Folder){0};
}

/* Running programs */

/* A relative folder of PATH would be another one elsewhere; an empty one is this. */
static void make_path_absolute(void)
{
    const char *path = getenv("PATH");
    char here[LONGEST_PATH];
    Text text = {0};
    if (!path || !getcwd(here, sizeof here))
        return;
    for (size_t length;; path += length + 1) {
        length = strcspn(path, ":");
        if (*path != '/')
            text_printf(&text, "%s%s", here, length ? "/" : "");
        text_put(&text, path, length);
        if (!path[length])
            break;
        text_char(&text, ':');
    }
    setenv("PATH", text.ptr, 1);
    text_free(&text);
}

/* What cannot be started is told by its errno in `failure`, which closes when a program starts: any exit status may be
 * a program's own. */
static _Noreturn void become(const Folder *folder, const char *const *words, int output, int failure)
{
    make_path_absolute();
    if (chdir(folder->path.ptr) == 0 && dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
        execvp(words[0], (char *const *)(uintptr_t)words);
    int error = errno;
    _exit(write(failure, &error, sizeof error) == sizeof error ? 126 : 127);
}

static void read_all(int end, Text *output)
{
    char block[4096];
    ssize_t count;
    while ((count = read(end, block, sizeof block)) > 0 || (count < 0 && errno == EINTR))
        if (count > 0)
            text_put(output, block, (size_t)count);
    close(end);
}

/* Why the program could not be started; 0 when it was. */
static int start_error(int end)
{
    Text told = {0};
    int error = 0;
    read_all(end, &told);
    if (told.len == sizeof error)
        memcpy(&error, told.ptr, sizeof error);
    text_free(&told);
    return error;
}

static bool open_pipes(int output[2], int failure[2])
{
    if (pipe(output))
        return false;
    if (pipe(failure) == 0)
        return fcntl(failure[1], F_SETFD, FD_CLOEXEC) == 0;
    close(output[0]);
    close(output[1]);
    return false;
}

int folder_run(const Folder *folder, const char *const *words, Text *output)
{
    int ends[2], failure[2], status;

    if (!open_pipes(ends, failure))
        return -1;
    pid_t child = running = fork();
    if (child == 0)
        become(folder, words, ends[1], failure[1]);
    close(ends[1]);
    close(failure[1]);
    read_all(ends[0], output);
    int error = start_error(failure[0]);
    bool ended = child > 0 && waitpid(child, &status, 0) >= 0;
    running = 0;
    if (!ended || error)
        return errno = error ? error : errno, -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
