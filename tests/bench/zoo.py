#!/usr/bin/python3
"""Networks of torchvision, timm and transformers, as PyTorch exports them, beside the peers of peers.py.

    zoo.py BUILD FOLDER [NETWORK ...] [options of peers.py]           without networks, all of NETWORKS

They are none of models/: what nobody has looked at, in extents and layouts of all kinds.  Weights are drawn; the .onnx files
stay in FOLDER, and peers.py times them, each in a process of its own.  The environment of peers/install.sh wants for this:

    /tmp/peers/bin/python3 -m pip install torchvision timm transformers
"""

import argparse
import pathlib
import subprocess
import sys
import warnings

import timm
import torch
import torchvision
import transformers
from torch import nn


def vision(name, size=224, **options):
    return lambda: (torchvision.models.get_model(name, weights=None, **options), torch.randn(1, 3, size, size))


def image(name, size=224):
    return lambda: (timm.create_model(name), torch.randn(1, 3, size, size))


class Part(nn.Module):
    """A model of transformers, called by one input, and one of its results"""

    def __init__(self, model, given, result):
        super().__init__()
        self.model, self.given, self.result = model, given, result

    def forward(self, x):
        made = self.model(x) if self.given == "x" else self.model(**{self.given: x})
        return made[self.result] if isinstance(made, dict) else getattr(made, self.result)


def tokens(count):
    return torch.randint(0, 1000, (1, count))


def language(model, config, count, **options):
    make, settings = getattr(transformers, model), getattr(transformers, config)
    return lambda: (Part(make(settings(**options)), "input_ids", "last_hidden_state"), tokens(count))


EAGER = {"attn_implementation": "eager"}


def whisper():
    config = transformers.WhisperConfig(d_model=384, encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536, **EAGER)
    return Part(transformers.WhisperModel(config).encoder, "input_features", "last_hidden_state"), torch.randn(1, 80, 3000)


def wav2vec():
    model = transformers.Wav2Vec2Model(transformers.Wav2Vec2Config(num_hidden_layers=4, **EAGER))
    return Part(model, "input_values", "last_hidden_state"), torch.randn(1, 16000)


def clip():
    return Part(transformers.CLIPVisionModel(transformers.CLIPVisionConfig(**EAGER)), "pixel_values", "pooler_output"), torch.randn(1, 3, 224, 224)


def segformer():
    model = transformers.SegformerForSemanticSegmentation(transformers.SegformerConfig())
    return Part(model, "pixel_values", "logits"), torch.randn(1, 3, 256, 256)


class UNet(nn.Module):
    def __init__(self, channels=(32, 64, 128, 256)):
        super().__init__()
        wider, narrower = list(zip((3, *channels), channels)), list(zip(channels[:0:-1], channels[-2::-1]))
        self.down = nn.ModuleList(self.twice(*pair) for pair in wider)
        self.grow = nn.ModuleList(nn.ConvTranspose2d(*pair, 2, 2) for pair in narrower)
        self.up = nn.ModuleList(self.twice(*pair) for pair in narrower)
        self.last = nn.Conv2d(channels[0], 4, 1)

    @staticmethod
    def twice(before, after):
        convolved = [[nn.Conv2d(c, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()] for c in (before, after)]
        return nn.Sequential(*convolved[0], *convolved[1])

    def forward(self, x):
        kept = [x := self.down[0](x)]
        for down in self.down[1:]:
            kept.append(x := down(nn.functional.max_pool2d(x, 2)))
        kept.pop()
        for grow, up in zip(self.grow, self.up):
            x = up(torch.cat([grow(x), kept.pop()], 1))
        return self.last(x)


class Recurrent(nn.Module):
    """Layers over [batch, steps, features], and what is made of each step"""

    def __init__(self, before, layers, features, results):
        super().__init__()
        self.before, self.layers, self.head = before, layers, nn.Linear(features, results)

    def forward(self, x):
        return self.head(self.layers(self.before(x))[0])


def bilstm():
    return Recurrent(nn.Embedding(5000, 128), nn.LSTM(128, 256, 2, bidirectional=True, batch_first=True), 512, 20), tokens(64)


def gru():
    return Recurrent(nn.Identity(), nn.GRU(80, 192, 3, batch_first=True), 192, 32), torch.randn(1, 100, 80)


def dcgan():
    layers, widths = [nn.ConvTranspose2d(100, 512, 4, bias=False), nn.BatchNorm2d(512), nn.ReLU()], (512, 256, 128, 64)
    for before, after in zip(widths, widths[1:]):
        layers += [nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()), torch.randn(1, 100, 1, 1)


def espcn():
    layers = [nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(), nn.Conv2d(32, 9, 3, padding=1)]
    return nn.Sequential(*layers, nn.PixelShuffle(3)), torch.randn(1, 1, 120, 160)


def tcn():
    layers = [[nn.Conv1d(64, 64, 3, padding=d, dilation=d), nn.BatchNorm1d(64), nn.ReLU()] for d in (1, 2, 4, 8, 16, 32)]
    return nn.Sequential(*sum(layers, [])), torch.randn(1, 64, 400)


def segmentation(name, size=224):
    return lambda: (Part(torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=21), "x", "out"),
                    torch.randn(1, 3, size, size))


def convolution(before, after, taps, stride=1, act=nn.ReLU, norm=nn.BatchNorm2d):
    return nn.Sequential(nn.Conv2d(before, after, taps, stride, taps // 2, bias=False), norm(after), act())


class Added(nn.Module):
    """What layers make of x, added to it"""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.layers(x)


def fcn32():
    layers = [[convolution(a, b, 3), nn.MaxPool2d(2)] for a, b in ((3, 32), (32, 64), (64, 128), (128, 128), (128, 128))]
    return nn.Sequential(*sum(layers, []), nn.Conv2d(128, 21, 1), nn.ConvTranspose2d(21, 21, 64, 32, 16)), torch.randn(1, 3, 224, 224)


def fsrcnn():
    mapping = sum([[nn.Conv2d(12, 12, 3, padding=1), nn.PReLU(12)] for _ in range(4)], [])
    layers = [nn.Conv2d(1, 56, 5, padding=2), nn.PReLU(56), nn.Conv2d(56, 12, 1), nn.PReLU(12), *mapping, nn.Conv2d(12, 56, 1), nn.PReLU(56)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(56, 1, 9, 3, 4, output_padding=2)), torch.randn(1, 1, 100, 100)


def edsr():
    blocks = [Added(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)) for _ in range(8)]
    grow = [nn.Conv2d(64, 256, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(64, 3, 3, padding=1)]
    return nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), Added(*blocks), *grow), torch.randn(1, 3, 64, 64)


def style():
    def reflected(before, after, taps, stride=1):
        return [nn.ReflectionPad2d(taps // 2), nn.Conv2d(before, after, taps, stride), nn.InstanceNorm2d(after, affine=True), nn.ReLU()]

    down = reflected(3, 32, 9) + reflected(32, 64, 3, 2) + reflected(64, 128, 3, 2)
    blocks = [Added(*reflected(128, 128, 3), *reflected(128, 128, 3)[:-1]) for _ in range(5)]
    up = sum([[nn.Upsample(scale_factor=2), *reflected(a, b, 3)] for a, b in ((128, 64), (64, 32))], [])
    return nn.Sequential(*down, *blocks, *up, nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9)), torch.randn(1, 3, 128, 128)


def generator(depth, before, after):
    """A U-Net of 4x4 windows around the next smaller one"""
    down = [nn.LeakyReLU(0.2), nn.Conv2d(before, after, 4, 2, 1), nn.BatchNorm2d(after)]
    inner = [Beside(generator(depth - 1, after, min(2 * after, 256)))] if depth else []
    up = [nn.ReLU(), nn.ConvTranspose2d(2 * after if depth else after, before, 4, 2, 1), nn.BatchNorm2d(before)]
    return nn.Sequential(*down, *inner, *up)


class Beside(Added):
    def forward(self, x):
        return torch.cat([x, self.layers(x)], 1)


def pix2pix():
    inner = Beside(generator(4, 32, 64))
    return nn.Sequential(nn.Conv2d(3, 32, 4, 2, 1), inner, nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()), torch.randn(1, 3, 256, 256)


def hifigan():
    layers, widths = [nn.Conv1d(80, 256, 7, padding=3)], (256, 128, 64, 32, 16)
    for before, after, stride in zip(widths, widths[1:], (8, 8, 2, 2)):
        layers += [nn.LeakyReLU(0.1), nn.ConvTranspose1d(before, after, 2 * stride, stride, stride // 2)]
        for d in (1, 3, 5):
            layers.append(Added(nn.LeakyReLU(0.1), nn.Conv1d(after, after, 7, padding=3 * d, dilation=d)))
    return nn.Sequential(*layers, nn.LeakyReLU(0.1), nn.Conv1d(16, 1, 7, padding=3), nn.Tanh()), torch.randn(1, 80, 40)


class Separator(nn.Module):
    """Conv-TasNet: a mask over frames of sound"""

    def __init__(self):
        super().__init__()
        blocks = [Added(nn.Conv1d(128, 256, 1), nn.PReLU(), nn.GroupNorm(1, 256), nn.Conv1d(256, 256, 3, padding=2**d, dilation=2**d, groups=256),
                        nn.PReLU(), nn.GroupNorm(1, 256), nn.Conv1d(256, 128, 1)) for d in range(6)]
        self.encode, self.decode = nn.Conv1d(1, 256, 16, 8), nn.ConvTranspose1d(256, 1, 16, 8)
        self.mask = nn.Sequential(nn.GroupNorm(1, 256), nn.Conv1d(256, 128, 1), *blocks, nn.PReLU(), nn.Conv1d(128, 256, 1), nn.Sigmoid())

    def forward(self, x):
        x = torch.relu(self.encode(x))
        return self.decode(x * self.mask(x))


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.each = nn.Sequential(*sum([[nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU()] for a, b in ((3, 64), (64, 128), (128, 1024))], []))
        self.all = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 40))

    def forward(self, x):
        return self.all(self.each(x).amax(2))


class CRNN(nn.Module):
    """Text in a line of an image: convolutions, then a recurrent layer over the columns"""

    def __init__(self):
        super().__init__()
        widths = ((1, 64, (2, 2)), (64, 128, (2, 2)), (128, 256, (2, 1)), (256, 256, (4, 1)))
        self.see = nn.Sequential(*sum([[convolution(a, b, 3), nn.MaxPool2d(p)] for a, b, p in widths], []))
        self.read, self.head = nn.LSTM(256, 128, 2, bidirectional=True, batch_first=True), nn.Linear(256, 80)

    def forward(self, x):
        return self.head(self.read(self.see(x).squeeze(2).transpose(1, 2))[0])


class Finder(nn.Module):
    """A small detector: slices of the image, stages that split and join, pooling pyramid, two scales with an upsampling between"""

    class Split(nn.Module):
        def __init__(self, before, after, count):
            super().__init__()
            half = after // 2
            self.one, self.two, self.last = (convolution(a, b, 1, act=nn.SiLU) for a, b in ((before, half), (before, half), (after, after)))
            self.blocks = nn.Sequential(*(Added(convolution(half, half, 1, act=nn.SiLU), convolution(half, half, 3, act=nn.SiLU)) for _ in range(count)))

        def forward(self, x):
            return self.last(torch.cat([self.blocks(self.one(x)), self.two(x)], 1))

    def __init__(self):
        super().__init__()
        def down(a, b):
            return convolution(a, b, 3, 2, act=nn.SiLU)

        self.stem = convolution(12, 32, 3, act=nn.SiLU)
        self.low = nn.Sequential(down(32, 64), self.Split(64, 64, 1), down(64, 128), self.Split(128, 128, 2))
        self.high = nn.Sequential(down(128, 256), self.Split(256, 256, 1))
        self.before, self.after = convolution(256, 128, 1, act=nn.SiLU), convolution(512, 256, 1, act=nn.SiLU)
        self.lateral, self.join = convolution(256, 128, 1, act=nn.SiLU), self.Split(256, 128, 1)
        self.heads = nn.ModuleList(nn.Conv2d(c, 3 * 25, 1) for c in (128, 256))

    def forward(self, x):
        x = self.stem(torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1))
        low = self.low(x)
        pools = [self.before(self.high(low))]
        for _ in range(3):
            pools.append(nn.functional.max_pool2d(pools[-1], 5, 1, 2))
        high = self.after(torch.cat(pools, 1))
        low = self.join(torch.cat([nn.functional.interpolate(self.lateral(high), scale_factor=2), low], 1))
        found = []
        for head, y in zip(self.heads, (low, high)):
            n, _, h, w = y.shape
            y = head(y).view(n, 3, 25, h, w).permute(0, 1, 3, 4, 2)
            found.append(torch.sigmoid(y).reshape(n, -1, 25))
        return torch.cat(found, 1)


def sequence(before, after, taps, stride=1, dilation=1, groups=1):
    return nn.Sequential(nn.Conv1d(before, after, taps, stride, taps // 2 * dilation, dilation, groups, bias=False), nn.BatchNorm1d(after), nn.ReLU())


def ecg():
    """A ResNet over samples of twelve leads"""
    widths = ((64, 128), (128, 192), (192, 256))
    layers = [[Added(sequence(a, a, 7), nn.Conv1d(a, a, 7, padding=3)), nn.ReLU(), sequence(a, b, 7, 2)] for a, b in widths]
    return nn.Sequential(sequence(12, 64, 15, 2), nn.MaxPool1d(3, 2, 1), *sum(layers, []), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
                         nn.Linear(256, 5)), torch.randn(1, 12, 2000)


def matchbox():
    """MatchboxNet: separable convolutions over frames of a spoken word"""
    sizes = ((64, 128, 11), (128, 64, 13), (64, 64, 15), (64, 64, 17), (64, 128, 29))
    layers = [[sequence(a, a, taps, groups=a), sequence(a, b, 1)] for a, b, taps in sizes]
    return nn.Sequential(*sum(layers, []), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, 30)), torch.randn(1, 64, 128)


class WaveNet(nn.Module):
    def __init__(self, channels=32, layers=8):
        super().__init__()
        self.first = nn.Conv1d(1, channels, 1)
        self.gates = nn.ModuleList(nn.Conv1d(channels, 2 * channels, 2, padding=2**d, dilation=2**d) for d in range(layers))
        self.rest = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in range(layers))
        self.skip = nn.ModuleList(nn.Conv1d(channels, 64, 1) for _ in range(layers))
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(64, 64, 1), nn.ReLU(), nn.Conv1d(64, 256, 1))

    def forward(self, x):
        count, skipped = x.shape[2], 0
        x = self.first(x)
        for gates, rest, skip in zip(self.gates, self.rest, self.skip):
            signal, gate = gates(x)[:, :, :count].chunk(2, 1)
            passed = torch.tanh(signal) * torch.sigmoid(gate)
            skipped, x = skipped + skip(passed), x + rest(passed)
        return self.last(skipped)


class Waves(nn.Module):
    """A U-Net over sound"""

    def __init__(self, channels=(24, 48, 96, 192)):
        super().__init__()
        self.down = nn.ModuleList(self.twice(*pair) for pair in zip((1, *channels), channels))
        self.up = nn.ModuleList(self.twice(a + b, b) for a, b in zip(channels[:0:-1], channels[-2::-1]))
        self.last = nn.Conv1d(channels[0], 1, 1)

    @staticmethod
    def twice(before, after):
        return nn.Sequential(sequence(before, after, 5), sequence(after, after, 5))

    def forward(self, x):
        kept = [x := self.down[0](x)]
        for down in self.down[1:]:
            kept.append(x := down(nn.functional.max_pool1d(x, 2)))
        kept.pop()
        for up in self.up:
            x = up(torch.cat([nn.functional.interpolate(x, scale_factor=2), kept.pop()], 1))
        return self.last(x)


def c3d():
    layers = [[nn.Conv3d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2)] for a, b in ((3, 32), (32, 64), (64, 128))]
    return nn.Sequential(*sum(layers, []), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(128, 10)), torch.randn(1, 3, 16, 56, 56)


NETWORKS = {name: vision(name) for name in """alexnet mnasnet1_0 regnet_y_400mf regnet_x_800mf efficientnet_v2_s convnext_tiny swin_t maxvit_t
    mobilenet_v3_large wide_resnet50_2 resnet18 vgg11_bn shufflenet_v2_x0_5 squeezenet1_0""".split()}
NETWORKS |= {name: image(name) for name in """mixer_s32_224 deit_tiny_patch16_224 ghostnet_100 res2net50_26w_4s hrnet_w18_small efficientformer_l1
    poolformer_s12 repvgg_a0 dla34 lcnet_100 levit_128s""".split()}
NETWORKS |= {name: image(name, size) for name, size in
             dict(mobilevit_s=256, edgenext_small=256, cspdarknet53=256, fastvit_t8=256, xception41=299, tinynet_e=106).items()}
NETWORKS |= {
    "googlenet": vision("googlenet", init_weights=False, aux_logits=False),
    "t5_encoder": language("T5EncoderModel", "T5Config", 64, num_layers=6, d_model=512, d_kv=64, d_ff=2048, num_heads=8, use_cache=False),
    "distilbert": language("DistilBertModel", "DistilBertConfig", 128, **EAGER),
    "albert": language("AlbertModel", "AlbertConfig", 128, hidden_size=768, num_attention_heads=12, intermediate_size=3072, **EAGER),
    **{make.__name__: make for make in (clip, whisper, wav2vec, segformer, bilstm, gru, dcgan, espcn, tcn, c3d, ecg, matchbox)},
    "unet": lambda: (UNet(), torch.randn(1, 3, 128, 128)),
    **{name: segmentation(name) for name in ("fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large")},
    **{make.__name__: make for make in (fcn32, fsrcnn, edsr, style, pix2pix, hifigan)},
    "tasnet": lambda: (Separator(), torch.randn(1, 1, 8000)),
    "pointnet": lambda: (PointNet(), torch.randn(1, 3, 1024)),
    "wavenet": lambda: (WaveNet(), torch.randn(1, 1, 2000)),
    "waves": lambda: (Waves(), torch.randn(1, 1, 2048)),
    "r3d_18": lambda: (torchvision.models.video.r3d_18(), torch.randn(1, 3, 8, 112, 112)),
    "crnn": lambda: (CRNN(), torch.randn(1, 1, 32, 128)),
    "finder": lambda: (Finder(), torch.randn(1, 3, 256, 256)),
}


def export(name, path):
    torch.manual_seed(0)
    model, x = NETWORKS[name]()
    for layer in model.eval().modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.8, 1.2)
    torch.onnx.export(model, (x,), path, opset_version=17, dynamo=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("network", nargs="*", default=list(NETWORKS))
    args, options = parser.parse_known_intermixed_args()
    if wrong := [name for name in args.network if name not in NETWORKS]:
        parser.error(f"{wrong[0]} is none of {', '.join(NETWORKS)}")
    args.folder.mkdir(parents=True, exist_ok=True)
    files = [args.folder.resolve() / f"{name}.onnx" for name in args.network]
    warnings.filterwarnings("ignore")
    for name, path in zip(args.network, files):
        if not path.exists():
            export(name, path)
    peers = pathlib.Path(__file__).with_name("peers.py")
    sys.exit(subprocess.run([sys.executable, peers, args.build, "--worst", "0.1", *options, *files], check=False).returncode)


if __name__ == "__main__":
    main()
