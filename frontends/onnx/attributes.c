/* Which attributes an op has.  One that it does not know, or that is of another kind, would be passed over in silence,
 * and its default would stand for it. */
#include <string.h>

#include "onnx/import.h"

/* By the op: words, `name:kind`, with `!` where a node must have it, `@6` from an opset on, `<6` before one, and
 * `=a|b`, the texts that it may be.  As the schemas of ONNX have it; but nothing hangs on the opset in ai.onnx.ml,
 * whose opset files leave out.  Ops that are not here have no attributes. */
#define AUTO_PAD "auto_pad:s=NOTSET|SAME_UPPER|SAME_LOWER|VALID"

static const struct {
    const char *op, *attributes;
} op_table[] = {
    {"Abs", "consumed_inputs:I<6"},
    {"Adagrad", "norm_coefficient:f decay_factor:f epsilon:f"},
    {"Adam", "epsilon:f norm_coefficient_post:f norm_coefficient:f beta:f alpha:f"},
    {"Add", "axis:i<7 consumed_inputs:I<6 broadcast:i<7"},
    {"AffineGrid", "align_corners:i"},
    {"And", "axis:i<7 broadcast:i<7"},
    {"ArgMax", "keepdims:i axis:i select_last_index:i@12"},
    {"ArgMin", "keepdims:i axis:i select_last_index:i@12"},
    {"Attention",
     "qk_matmul_output_mode:i softcap:f softmax_precision:i kv_num_heads:i q_num_heads:i "
     "scale:f is_causal:i right_window_size:i@25 left_window_size:i@25"},
    {"AveragePool",
     "pads:I " AUTO_PAD " strides:I kernel_shape:I! count_include_pad:i@7 ceil_mode:i@10 dilations:I@19"},
    {"BatchNormalization", "consumed_inputs:I!<6 momentum:f epsilon:f is_test:i<7 spatial:i<9 training_mode:i@14"},
    {"Bernoulli", "dtype:i seed:f"},
    {"Binarizer", "threshold:f"},
    {"BitCast", "to:i!"},
    {"BitShift", "direction:s!=LEFT|RIGHT"},
    {"BlackmanWindow", "periodic:i output_datatype:i"},
    {"Cast", "to:s!<6 to:i!@6 saturate:i@19 round_mode:s@24"},
    {"CastLike", "saturate:i@19 round_mode:s@24"},
    {"CausalConvWithState", "activation:s"},
    {"Ceil", "consumed_inputs:I<6"},
    {"Celu", "alpha:f"},
    {"CenterCropPad", "axes:I"},
    {"Clip", "consumed_inputs:I<6 max:f<11 min:f<11"},
    {"Col2Im", "strides:I pads:I dilations:I"},
    {"Compress", "axis:i"},
    {"Concat", "axis:i<4 axis:i!@4"},
    {"ConcatFromSequence", "new_axis:i axis:i!"},
    {"Constant",
     "value:t!<11 value:t@11 sparse_value:p@11 value_strings:S@12 value_string:s@12 "
     "value_floats:F@12 value_float:f@12 value_ints:I@12 value_int:i@12"},
    {"ConstantOfShape", "value:t"},
    {"Conv", "group:i pads:I " AUTO_PAD " strides:I dilations:I kernel_shape:I"},
    {"ConvInteger", "group:i pads:I strides:I dilations:I kernel_shape:I " AUTO_PAD},
    {"ConvTranspose",
     "group:i " AUTO_PAD " strides:I pads:I output_padding:I dilations:I output_shape:I kernel_shape:I"},
    {"CumProd", "reverse:i exclusive:i"},
    {"CumSum", "reverse:i exclusive:i"},
    {"DFT", "inverse:i axis:i<20 onesided:i"},
    {"DeformConv", "strides:I pads:I offset_group:i kernel_shape:I group:i dilations:I"},
    {"DepthToSpace", "blocksize:i! mode:s@11=DCR|CRD"},
    {"DequantizeLinear", "axis:i@13 block_size:i@21 output_dtype:i@23"},
    {"Div", "axis:i<7 consumed_inputs:I<6 broadcast:i<7"},
    {"Dropout", "is_test:i<7 consumed_inputs:I<6 ratio:f<12 seed:i@12"},
    {"Einsum", "equation:s!"},
    {"Elu", "consumed_inputs:I<6 alpha:f"},
    {"Equal", "axis:i<7 broadcast:i<7"},
    {"Exp", "consumed_inputs:I<6"},
    {"EyeLike", "dtype:i k:i"},
    {"FeatureVectorizer", "inputdimensions:I"},
    {"Flatten", "axis:i"},
    {"FlexAttention", "prob_mod:g score_mod:g softmax_precision:i scale:f"},
    {"Floor", "consumed_inputs:I<6"},
    {"GRU",
     "clip:f activation_beta:F output_sequence:i<7 activation_alpha:F hidden_size:i "
     "direction:s=forward|reverse|bidirectional activations:S linear_before_reset:i@3 "
     "layout:i@14"},
    {"Gather", "axis:i"},
    {"GatherElements", "axis:i"},
    {"GatherND", "batch_dims:i@12"},
    {"Gelu", "approximate:s=none|tanh"},
    {"Gemm", "beta:f broadcast:i<7 transB:i alpha:f transA:i"},
    {"GlobalLpPool", "p:f<2 p:i@2"},
    {"Gradient", "y:s! zs:S xs:S!"},
    {"Greater", "axis:i<7 broadcast:i<7"},
    {"GridSample",
     "align_corners:i padding_mode:s mode:s<20=bilinear|nearest|bicubic "
     "mode:s@20=linear|nearest|cubic"},
    {"GroupNormalization", "num_groups:i! epsilon:f stash_type:i@21"},
    {"HammingWindow", "periodic:i output_datatype:i"},
    {"HannWindow", "periodic:i output_datatype:i"},
    {"HardSigmoid", "consumed_inputs:I<6 beta:f alpha:f"},
    {"Hardmax", "axis:i"},
    {"If", "else_branch:g! then_branch:g!"},
    {"Imputer",
     "replaced_value_int64:i imputed_value_int64s:I replaced_value_float:f "
     "imputed_value_floats:F"},
    {"InstanceNormalization", "epsilon:f consumed_inputs:I<6"},
    {"IsInf", "detect_negative:i detect_positive:i"},
    {"LRN", "bias:f beta:f alpha:f size:i!"},
    {"LSTM",
     "clip:f activation_beta:F output_sequence:i<7 activation_alpha:F hidden_size:i "
     "direction:s=forward|reverse|bidirectional input_forget:i activations:S layout:i@14"},
    {"LabelEncoder",
     "default_string:s default_int64:i classes_strings:S default_float:f values_int64s:I "
     "values_strings:S keys_floats:F values_floats:F keys_int64s:I keys_strings:S "
     "default_tensor:t values_tensor:t keys_tensor:t"},
    {"LayerNormalization", "stash_type:i epsilon:f axis:i"},
    {"LeakyRelu", "consumed_inputs:I<6 alpha:f"},
    {"Less", "axis:i<7 broadcast:i<7"},
    {"LinearAttention", "chunk_size:i kv_num_heads:i! q_num_heads:i! scale:f update_rule:s"},
    {"LinearClassifier",
     "post_transform:s classlabels_ints:I classlabels_strings:S multi_class:i intercepts:F "
     "coefficients:F!"},
    {"LinearRegressor", "targets:i intercepts:F coefficients:F post_transform:s"},
    {"Log", "consumed_inputs:I<6"},
    {"LogSoftmax", "axis:i"},
    {"Loop", "body:g!"},
    {"LpNormalization", "p:i axis:i"},
    {"LpPool",
     "p:f<2 p:i@2 pads:I " AUTO_PAD " strides:I kernel_shape:I<2 kernel_shape:I!@2 ceil_mode:i@18 dilations:I@18"},
    {"Max", "consumed_inputs:I<6"},
    {"MaxPool", "pads:I " AUTO_PAD " strides:I kernel_shape:I! storage_order:i@8 dilations:I@10 ceil_mode:i@10"},
    {"MaxRoiPool", "spatial_scale:f pooled_shape:I!"},
    {"MaxUnpool", "pads:I strides:I kernel_shape:I!"},
    {"Mean", "consumed_inputs:I<6"},
    {"MeanVarianceNormalization", "axes:I"},
    {"MelWeightMatrix", "output_datatype:i"},
    {"Min", "consumed_inputs:I<6"},
    {"Mod", "fmod:i"},
    {"Momentum", "norm_coefficient:f! beta:f! mode:s!=standard|nesterov alpha:f!"},
    {"Mul", "axis:i<7 consumed_inputs:I<6 broadcast:i<7"},
    {"Multinomial", "dtype:i seed:f sample_size:i"},
    {"Neg", "consumed_inputs:I<6"},
    {"NegativeLogLikelihoodLoss", "ignore_index:i reduction:s=none|sum|mean"},
    {"NonMaxSuppression", "center_point_box:i"},
    {"Normalizer", "norm:s"},
    {"OneHot", "axis:i"},
    {"OneHotEncoder", "zeros:i cats_strings:S cats_int64s:I"},
    {"Optional", "type:y"},
    {"Or", "axis:i<7 broadcast:i<7"},
    {"PRelu", "consumed_inputs:I<6"},
    {"Pad", "value:f<11 mode:s paddings:I!<2 pads:I!@2<11"},
    {"Pow", "axis:i<7 broadcast:i<7"},
    {"QLinearConv", "group:i pads:I strides:I dilations:I kernel_shape:I " AUTO_PAD},
    {"QuantizeLinear", "axis:i@13 saturate:i@19 output_dtype:i@21 block_size:i@21 precision:i@23"},
    {"RMSNormalization", "stash_type:i epsilon:f axis:i"},
    {"RNN",
     "clip:f activation_beta:F output_sequence:i<7 activation_alpha:F hidden_size:i "
     "direction:s=forward|reverse|bidirectional activations:S layout:i@14"},
    {"RandomNormal", "shape:I! dtype:i seed:f scale:f mean:f"},
    {"RandomNormalLike", "dtype:i seed:f scale:f mean:f"},
    {"RandomUniform", "shape:I! dtype:i seed:f high:f low:f"},
    {"RandomUniformLike", "dtype:i seed:f high:f low:f"},
    {"Range", "stash_type:i@27"},
    {"Reciprocal", "consumed_inputs:I<6"},
    {"ReduceL1", "keepdims:i axes:I<18 noop_with_empty_axes:i@18"},
    {"ReduceL2", "keepdims:i axes:I<18 noop_with_empty_axes:i@18"},
    {"ReduceLogSum", "keepdims:i axes:I<18 noop_with_empty_axes:i@18"},
    {"ReduceLogSumExp", "keepdims:i axes:I<18 noop_with_empty_axes:i@18"},
    {"ReduceMax", "keepdims:i axes:I<18 noop_with_empty_axes:i@18"},
    {"ReduceMean", "keepdims:i axes:I<18 noop_with_empty_axes:i@18"},
    {"ReduceMin", "keepdims:i axes:I<18 noop_with_empty_axes:i@18"},
    {"ReduceProd", "keepdims:i axes:I<18 noop_with_empty_axes:i@18"},
    {"ReduceSum", "keepdims:i axes:I<13 noop_with_empty_axes:i@13"},
    {"ReduceSumSquare", "keepdims:i axes:I<18 noop_with_empty_axes:i@18"},
    {"Relu", "consumed_inputs:I<6"},
    {"Reshape", "consumed_inputs:I<5 shape:I<5 allowzero:i@14"},
    {"Resize",
     "mode:s extrapolation_value:f@11 exclude_outside:i@11 nearest_mode:s@11 "
     "coordinate_transformation_mode:s@11 cubic_coeff_a:f@11 "
     "keep_aspect_ratio_policy:s@18=stretch|not_larger|not_smaller axes:I@18 antialias:i@18"},
    {"ReverseSequence", "batch_axis:i time_axis:i"},
    {"RoiAlign",
     "mode:s output_height:i sampling_ratio:i output_width:i spatial_scale:f "
     "coordinate_transformation_mode:s@16"},
    {"RotaryEmbedding", "num_heads:i rotary_embedding_dim:i interleaved:i"},
    {"STFT", "onesided:i"},
    {"SVMClassifier",
     "classlabels_ints:I rho:F prob_b:F coefficients:F classlabels_strings:S prob_a:F "
     "support_vectors:F vectors_per_class:I post_transform:s kernel_params:F "
     "kernel_type:s=LINEAR|POLY|RBF|SIGMOID"},
    {"SVMRegressor",
     "rho:F coefficients:F n_supports:i one_class:i support_vectors:F post_transform:s "
     "kernel_params:F kernel_type:s=LINEAR|POLY|RBF|SIGMOID"},
    {"Scaler", "scale:F offset:F"},
    {"Scan",
     "directions:I<9 num_scan_inputs:i! body:g! scan_input_axes:I@9 scan_output_axes:I@9 "
     "scan_output_directions:I@9 scan_input_directions:I@9"},
    {"Scatter", "axis:i"},
    {"ScatterElements", "axis:i reduction:s@16"},
    {"ScatterND", "reduction:s@16"},
    {"Selu", "consumed_inputs:I<6 gamma:f alpha:f"},
    {"SequenceEmpty", "dtype:i"},
    {"SequenceMap", "body:g!"},
    {"Shape", "end:i@15 start:i@15"},
    {"Shrink", "bias:f lambd:f"},
    {"Sigmoid", "consumed_inputs:I<6"},
    {"SimplifiedLayerNormalization", "stash_type:i epsilon:f axis:i"}, /* ONNX Runtime's own, in the domain of ONNX */
    {"Slice", "ends:I!<10 starts:I!<10 axes:I<10"},
    {"Softmax", "axis:i"},
    {"SoftmaxCrossEntropyLoss", "ignore_index:i reduction:s=none|sum|mean"},
    {"SpaceToDepth", "blocksize:i! mode:s@28=DCR|CRD"},
    {"Split", "split:I<13 axis:i num_outputs:i@18"},
    {"SplitToSequence", "keepdims:i axis:i"},
    {"Sqrt", "consumed_inputs:I<6"},
    {"Squeeze", "axes:I<13"},
    {"Sub", "axis:i<7 consumed_inputs:I<6 broadcast:i<7"},
    {"Sum", "consumed_inputs:I<6"},
    {"SwiGLU", "alpha:f"},
    {"Swish", "alpha:f"},
    {"Tanh", "consumed_inputs:I<6"},
    {"TensorScatter", "mode:s axis:i"},
    {"TfIdfVectorizer",
     "mode:s! ngram_indexes:I! weights:F ngram_counts:I! pool_int64s:I pool_strings:S "
     "max_skip_count:i! min_gram_length:i! max_gram_length:i!"},
    {"ThresholdedRelu", "alpha:f"},
    {"TopK", "axis:i k:i!<10 sorted:i@11 largest:i@11"},
    {"Transpose", "perm:I"},
    {"TreeEnsemble",
     "aggregate_function:i post_transform:i tree_roots:I! nodes_hitrates:t "
     "nodes_missing_value_tracks_true:I nodes_modes:t! leaf_weights:t! leaf_targetids:I! "
     "nodes_falsenodeids:I! n_targets:i nodes_trueleafs:I! nodes_featureids:I! nodes_splits:t! "
     "nodes_falseleafs:I! nodes_truenodeids:I! membership_values:t"},
    {"TreeEnsembleClassifier",
     "post_transform:s classlabels_int64s:I nodes_nodeids:I classlabels_strings:S class_ids:I "
     "class_weights:F nodes_treeids:I nodes_featureids:I nodes_values:F nodes_falsenodeids:I "
     "nodes_hitrates:F base_values:F nodes_missing_value_tracks_true:I nodes_modes:S "
     "nodes_truenodeids:I class_treeids:I class_nodeids:I base_values_as_tensor:t "
     "class_weights_as_tensor:t nodes_values_as_tensor:t nodes_hitrates_as_tensor:t"},
    {"TreeEnsembleRegressor",
     "aggregate_function:s post_transform:s n_targets:i nodes_nodeids:I target_nodeids:I "
     "nodes_treeids:I nodes_featureids:I nodes_values:F target_weights:F nodes_falsenodeids:I "
     "nodes_hitrates:F base_values:F nodes_missing_value_tracks_true:I nodes_modes:S "
     "nodes_truenodeids:I target_treeids:I target_ids:I base_values_as_tensor:t "
     "target_weights_as_tensor:t nodes_values_as_tensor:t nodes_hitrates_as_tensor:t"},
    {"Trilu", "upper:i"},
    {"Unique", "axis:i sorted:i"},
    {"Unsqueeze", "axes:I!<13"},
    {"Upsample", "mode:s=nearest|linear|bilinear height_scale:f!<7 width_scale:f!<7 scales:F!@7<9"},
    {"Xor", "axis:i<7 broadcast:i<7"},
    {"ZipMap", "classlabels_int64s:I classlabels_strings:S"},
};

static const struct { /* by the number that the file has */
    char letter;
    const char *name;
} kind_table[] = {
    {0, NULL},       {'f', "a float"}, {'i', "an int"},  {'s', "a string"}, {'t', "a tensor"}, {'g', "a graph"},
    {'F', "floats"}, {'I', "ints"},    {'S', "strings"}, {'T', "tensors"},  {'G', "graphs"},   {'p', "a sparse tensor"},
};

typedef struct Allowed { /* one word of a row */
    Str name, texts;     /* texts: empty where any will do */
    char kind;
    bool required;
    int64_t since, until;
} Allowed;

static int64_t read_number(const char **at)
{
    int64_t number = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        number = number * 10 + **at - '0';
    return number;
}

static Str read_until(const char **at, const char *end)
{
    uint32_t length = (uint32_t)strcspn(*at, end);
    *at += length;
    return (Str){*at - length, length};
}

/* False where the row ends. */
static bool next_word(const char **at, Allowed *word)
{
    *at += strspn(*at, " ");
    if (!**at)
        return false;
    *word = (Allowed){.until = INT64_MAX};
    word->name = read_until(at, ":");
    word->kind = (*at)[1];
    *at += 2;
    while (**at && **at != ' ') {
        char mark = *(*at)++;
        word->required |= mark == '!';
        if (mark == '@')
            word->since = read_number(at);
        else if (mark == '<')
            word->until = read_number(at);
        else if (mark == '=')
            word->texts = read_until(at, " ");
    }
    return true;
}

static bool next_allowed(const OnnxNode *node, const char **at, Allowed *word)
{
    while (next_word(at, word))
        if (node->opset >= word->since && node->opset < word->until)
            return true;
    return false;
}

static const char *row_of(const char *op)
{
    for (size_t i = 0; i < sizeof op_table / sizeof *op_table; i++)
        if (op_table[i].op[0] == op[0] && strcmp(op_table[i].op, op) == 0)
            return op_table[i].attributes;
    return "";
}

/* Those that begin with `_` are notes of whoever wrote the file. */
static bool is_allowed(const OnnxNode *node, const char *row, const char *name)
{
    Allowed word;
    while (next_allowed(node, &row, &word))
        if (str_is(word.name, name))
            return true;
    return name[0] == '_';
}

static bool has_attribute(const OnnxNode *node, const char *name)
{
    for (size_t i = 0; i < node->proto->n_attribute; i++)
        if (node->proto->attribute[i]->name && strcmp(node->proto->attribute[i]->name, name) == 0)
            return true;
    return false;
}

static const char *kind_name(char letter)
{
    for (size_t i = 1; i < sizeof kind_table / sizeof *kind_table; i++)
        if (kind_table[i].letter == letter)
            return kind_table[i].name;
    return "a type";
}

/* Files of the first version of the format do not say the kind. */
static bool check_kind(OnnxNode *node, const Allowed *word, const char *name, const Onnx__AttributeProto *a)
{
    size_t kinds = sizeof kind_table / sizeof *kind_table;
    char kind = a->type > 0 && (size_t)a->type < kinds ? kind_table[a->type].letter : 'y';
    return a->type == 0 || kind == word->kind ||
           onnx_no(node, "%s is %s; the op takes %s", name, kind_name(kind), kind_name(word->kind));
}

static bool check_text(OnnxNode *node, const Allowed *word, const char *name, const Onnx__AttributeProto *a)
{
    const char *texts = str_copy(node->onnx->arena, word->texts).ptr;
    Str given = {(const char *)a->s.data, (uint32_t)a->s.len};
    if (!word->texts.len || !a->has_s)
        return true;
    for (const char *at = texts; *at; at += *at == '|')
        if (str_eq(read_until(&at, "|"), given))
            return true;
    return onnx_no(node, "%s is '" STR_FMT "', and none of %s", name, STR_ARG(given), texts);
}

static bool check_word(OnnxNode *node, const Allowed *word)
{
    const char *name = str_copy(node->onnx->arena, word->name).ptr;
    const Onnx__AttributeProto *a = onnx_attribute(node, name);
    if (!a) /* what a call does not give its function has a default, too */
        return !word->required || has_attribute(node, name) || onnx_no(node, "its attribute %s is missing", name);
    return check_kind(node, word, name, a) && check_text(node, word, name, a);
}

bool onnx_check_attributes(OnnxNode *node)
{
    const Onnx__NodeProto *proto = node->proto;
    if (proto->domain && *proto->domain && strncmp(proto->domain, "ai.onnx", 7) != 0)
        return true;
    const char *row = row_of(proto->op_type), *at = row;
    Allowed word;
    while (next_allowed(node, &at, &word))
        if (!check_word(node, &word))
            return false;
    for (size_t i = 0; i < proto->n_attribute; i++) {
        const char *name = proto->attribute[i]->name ? proto->attribute[i]->name : "";
        if (!is_allowed(node, row, name))
            return onnx_no(node, "it has an attribute %s, which the op does not know", name);
    }
    return true;
}
