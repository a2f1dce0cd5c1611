/* The wire format of protobuf, before protobuf-c sees it. */
#ifndef NNC_ONNX_WIRE_H
#define NNC_ONNX_WIRE_H

#include "base/file.h"
#include "onnx/onnx.pb-c.h"

#define WIRE_DEEPEST  100     /* messages inside each other: protobuf-c would recurse without end */
#define WIRE_MESSAGES 4000000 /* in one file */

/* Decodes a mapped file as a message of this kind, into the arena.  Elements of tensors (raw_data) stay where they are:
 * TensorProto says where.  Fields that onnx.proto does not have are left out.  NULL, with a file error that names the
 * byte, when lengths do not add up. */
ProtobufCMessage *wire_decode(Arena *arena, Diag *diag, Str path, const FileMap *file,
                              const ProtobufCMessageDescriptor *kind);

#endif
