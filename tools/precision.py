#!/usr/bin/env python3
"""What the variants of kernels cost in accuracy: for each, the KL divergence of the next token's distribution from that
of --precision exact, on the same device and file, position by position in float64. Trained models read a real text, and
models of random weights, one of every family, random tokens. tests/test_precision.c holds the variants that are some
device's default against the table that this writes: without its rows a variant cannot be one.

  precision.py [VARIANT...]    such as matmul=dot; without any, all that the device has

Rows of variants that were measured replace the table's; the others stay, as no device has all variants. Those that a
driver has only where it is newer, or another, are measured there: VK_DRIVER_FILES says which. Needs numpy.
"""
import argparse, json, os, pathlib, subprocess, sys, tempfile
import numpy as np

TOP = pathlib.Path(__file__).resolve().parent.parent
HEAD = """\
# Accuracy of kernels (tools/precision.py): the KL divergence, in nats, of the next token's distribution from that of
# --precision exact, on the same device and file: the mean and the largest of all positions, and the share of them where
# both find the same token the likeliest. The type is that of the weights; of attention, that of the cache. Chunk:
# tokens in a pass. Where a variant has no kernel for a type, or for the size of a head, its fallback was measured.
# A divergence is 0 for what --precision exact itself took on that device, and for other exact variants shows how far
# another order of sums goes. Models of random weights (tiny-*, vaultgemma, llama-quants) stand for their families.
variant model type chunk positions mean_kl max_kl top1 driver
"""
CHUNKS = {'matmul': 256, 'matvec': 1, 'attention': 256}
CACHES = 'f16', 'f32', 'q8_0', 'q8_0/q4_1', 'q5_1', 'q4_1'
TRAINED = {   # and the types that they are converted to
    'demo': 'f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q4_k q5_k q6_k'.split(),
    'stories260K': 'f32 f16 q8_0 q4_0'.split(),   # its 64 columns are no whole block of k-quants
}
SHAPES = 'tiny-gemma tiny-gemma2 tiny-gemma3 tiny-gemma4 tiny-gemma4-moe tiny-gemma4-e tiny-llama'.split()
SHAPE_TYPES = 'f16 q8_0'.split()
GOLDEN = {'vaultgemma': 'bf16', 'llama-quants': 'mixed'}
TRAINED_POSITIONS, RANDOM_POSITIONS, STEPS = 512, 300, 300


class Command:
    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def __call__(self, *args, stdin=None):
        done = subprocess.run([self.path, *map(str, args)], input=stdin, capture_output=True, text=True)
        if done.returncode: sys.exit(f'precision.py: {" ".join(map(str, args[:3]))}: {done.stderr.strip()}')
        return done.stdout

    def logits(self, model, ids, chunk, cache, *options):
        """[position, token], float64."""
        out = self.folder / 'logits'
        self('logits', '-m', model, '--tokens', '-', '--out', out, '--chunk', chunk, '--kv', cache, *options,
             stdin=','.join(map(str, ids)))
        return np.fromfile(out, '<f4').reshape(len(ids), -1).astype(np.float64)


def log_softmax(x):
    x = x - x.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def compare(exact, other):
    """The mean and the largest divergence, and the share of positions whose likeliest token is the same."""
    p, q = log_softmax(exact), log_softmax(other)
    kl = np.maximum((np.exp(p) * (p - q)).sum(1), 0)     # what rounding leaves of 0 may be below it
    return kl.mean(), kl.max(), (exact.argmax(1) == other.argmax(1)).mean()


def device_of(command):
    """Of the device that is used: its variants, and its driver's name and version."""
    device = next(d for d in json.loads(command('devices', '--json')) if d['usable'])
    name, version = device['driver'], device['driver_info'].replace('Mesa', '').split()
    variants = [f'{o}={v}' for o, kernels in device['kernels'].items() for v in kernels['variants']]
    return variants, f'{name}-{version[0].split("-")[0]}' if version else name


def cases(command, text):
    """(name, type, file, ids) of every model, each made as it is needed."""
    made = command.folder / 'model.gguf'
    sources = {'demo': TOP / 'models/stories.gguf', 'stories260K': text.parent / 'stories260K/stories260K.gguf'}
    begin = text.read_text()[:8192]
    for name, source in sources.items():
        if not source.exists():
            print(f'{source} is not there: its rows stay as they are', file=sys.stderr)
            continue
        ids = command('tokenize', '-m', source, '--bos', stdin=begin).strip().split(',')[:TRAINED_POSITIONS]
        for kind in TRAINED[name]:
            command('convert', source, '--type', kind, '-o', made)
            yield name, kind, made, ids
    ids = np.random.Generator(np.random.PCG64(1)).integers(4, 250, RANDOM_POSITIONS)
    for shape in SHAPES:
        for kind in SHAPE_TYPES:
            command('make', '--shape', shape, '--type', kind, '-o', made)
            yield shape, kind, made, ids
    for name, kind in GOLDEN.items():
        path = TOP / 'build/golden' / name
        yield name, kind, path / 'model.gguf' if (path / 'model.gguf').exists() else path, ids


def measure(command, variants, case):
    """(variant, type, chunk, positions, mean, largest, share) of each; of attention with one type of weights."""
    name, kind, path, ids = case
    caches = () if kind not in ('q8_0', GOLDEN.get(name)) else CACHES if name in TRAINED else CACHES[:1]
    exact = {}
    for variant in variants:
        operation = variant.split('=')[0]
        chunk = CHUNKS[operation]
        own = ids[:STEPS] if chunk == 1 else ids
        for cache in caches if operation == 'attention' else CACHES[:1]:
            if (chunk, cache) not in exact:
                exact[chunk, cache] = command.logits(path, own, chunk, cache, '--precision', 'exact')
            other = command.logits(path, own, chunk, cache, '--kernel', variant)
            shown = cache if operation == 'attention' else kind
            yield variant, shown, chunk, len(own), *compare(exact[chunk, cache], other)


def read_rows(path):
    """Lines by (variant, model, type)."""
    if not path.exists(): return {}
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith(('#', 'variant '))]
    return {tuple(line.split()[:3]): line for line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('variants', nargs='*', metavar='VARIANT')
    parser.add_argument('--peridot', default=TOP / 'build/peridot', help='the command (build/peridot)')
    parser.add_argument('--text', type=pathlib.Path, default=TOP.parent / 'shared/data/stories-heldout.txt',
                        help='what trained models read; stories260K is looked for beside it')
    parser.add_argument('--table', type=pathlib.Path, default=TOP / 'tests/reports/precision.txt')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = Command(args.peridot, pathlib.Path(folder))
        variants, driver = device_of(command)
        unknown = [v for v in args.variants if v not in variants]
        if unknown: sys.exit(f'precision.py: the device cannot do {", ".join(unknown)}')
        rows = read_rows(args.table)
        for case in cases(command, args.text):
            for variant, kind, chunk, n, *numbers in measure(command, args.variants or variants, case):
                mean, largest, top1 = numbers
                line = f'{variant} {case[0]} {kind} {chunk} {n} {mean:.1e} {largest:.1e} {top1:.4f} {driver}'
                rows[variant, case[0], kind] = line
                print(line, flush=True)
        args.table.write_text(HEAD + ''.join(line + '\n' for line in sorted(rows.values())))


if __name__ == '__main__':
    main()
