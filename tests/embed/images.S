/* Ten images of 28 x 28 pixels, without the 13 bytes that a .pgm begins with; assemble with -I of their folder. */
    .syntax unified
    .section .rodata
    .globl images
images:
    .irp digit, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
    .incbin "\digit\().pgm", 13, 784
    .endr
