#!/usr/bin/env python3
"""How fast models would be on GPUs that need not be there, by what instructions.py has counted in the hot loops of the
kernels and by the GPUs' data sheets.

  predict.py predict TABLES...          of tools/pipelines: instructions.txt and those of the vendors; writes the
                                        predicted tokens/s of models on each GPU
  predict.py best-layouts DRIVER CELLS  what `instructions.py layouts` has written; writes the layouts of matvec that are
                                        predicted to be best, and what the defaults lose
"""
import collections, math, re, sys

from instructions import BITS, SUBGROUP_ID, of_experts, read_table, unit_of

# For each GPU that kernels are compiled for, a product that has it: lanes (32-bit instructions issued a clock), those
# of what keeps its waves (a SIMD, EU, SM or core), MHz (the highest), GB/s, and where that is published. Memory that a
# processor shares with its GPU counts whole.
GPUS = {gpu: (product, int(lanes), int(unit), int(mhz), float(gbs)) for gpu, product, lanes, unit, mhz, gbs, _ in (
    (part.strip() for part in row.split('|')) for row in """
vega10  | Radeon RX Vega 64          | 4096 |  16 | 1546 | 483.8 | AMD, product page: 64 compute units of 64
renoir  | Ryzen 7 4800U (Vega 8)     |  512 |  16 | 1750 |  68.3 | AMD, product page: 8 graphics cores; LPDDR4-4266
navi10  | Radeon RX 5700 XT          | 2560 |  32 | 1905 | 448   | AMD, product page
navi21  | Radeon RX 6800 XT          | 4608 |  32 | 2250 | 512   | AMD, product page
navi31  | Radeon RX 7900 XTX         | 6144 |  32 | 2500 | 960   | AMD, product page; dual issue is not counted on
phoenix | Ryzen 7 7840U (780M)       |  768 |  32 | 2700 | 120   | AMD, product page: 12 graphics cores; LPDDR5x-7500
gfx1151 | Ryzen AI Max+ 395 (8060S)  | 2560 |  32 | 2900 | 256   | AMD, product page: 40 graphics cores
gfx1201 | Radeon RX 9070 XT          | 4096 |  32 | 2970 | 640   | AMD, product page
skl     | Core i5-8600 (UHD 630)     |  192 |   8 | 1150 |  41.6 | Intel ARK: 24 EUs of 8 lanes
icl     | Core i7-1065G7 (Iris Plus) |  512 |   8 | 1100 |  58.3 | Intel ARK: 64 EUs of 8 lanes
tgl     | Core i7-1185G7 (Iris Xe)   |  768 |   8 | 1350 |  68.3 | Intel ARK: 96 EUs of 8 lanes; LPDDR4x-4267, 128 bits
adl     | Core i7-1280P (Iris Xe)    |  768 |   8 | 1450 |  83.2 | Intel ARK: 96 EUs of 8 lanes; LPDDR5-5200, 128 bits
dg2     | Arc A770 16 GB             | 4096 |   8 | 2100 | 560   | Intel ARK: 32 Xe cores of 16 engines of 8 lanes
mtl     | Core Ultra 7 155H (Arc)    | 1024 |   8 | 2250 | 119.5 | Intel ARK: 8 Xe cores of 16 engines; LPDDR5x-7467
lnl     | Core Ultra 7 258V (140V)   | 1024 |  16 | 1950 | 136.5 | Intel ARK: 8 Xe cores of 8 engines; LPDDR5x-8533
bmg     | Arc B580                   | 2560 |  16 | 2670 | 456   | Intel ARK: 20 Xe cores of 8 engines of 16 lanes
pascal  | GeForce GTX 1080           | 2560 | 128 | 1733 | 320   | NVIDIA, GeForce GTX 1080 whitepaper: 20 SMs
turing  | GeForce RTX 2080           | 5888 | 128 | 1710 | 448   | NVIDIA, Turing whitepaper: 46 SMs that issue 4 warps
ampere  | GeForce RTX 3070           | 5888 | 128 | 1725 | 448   | NVIDIA, Ampere GA102 whitepaper: 46 SMs, 4 warps each
a630    | Snapdragon 845             |  256 | 256 |  710 |  29.9 | Qualcomm publishes the memory only (LPDDR4X-3733):
a660    | Snapdragon 888             |  512 | 256 |  840 |  51.2 | lanes and clocks are those that
a730    | Snapdragon 8 Gen 1         | 1024 | 256 |  818 |  51.2 | Mesa's table of Adrenos (cores of
a740    | Snapdragon X Elite (X1-85) | 1536 | 256 | 1250 | 135   | 256) and reviews have; here: Qualcomm's 3.8 TFLOPS
a750    | Snapdragon 8 Gen 3         | 1536 | 256 |  903 |  76.8 |
""".strip().splitlines())}

# The lanes of the smallest subgroups, and how many lanes that take some rows of a matrix each are enough: of discrete
# GPUs, and of others.
SMALLEST_SUBGROUP = {gpu: (enough, int(lanes)) for enough, row in (
    (16384, 'vega10=64 navi10=32 navi21=32 navi31=32 gfx1201=32 dg2=8 bmg=16 pascal=32 turing=32 ampere=32'),
    (2048, 'renoir=64 phoenix=32 gfx1151=32 skl=8 icl=8 tgl=8 adl=8 mtl=8 lnl=16 a630=64 a660=64 a730=64 a740=64 '
           'a750=64'))
    for gpu, lanes in (part.split('=') for part in row.split())}

# Layers, d_model, ffn_dim, width of queries, of keys and values, and rows of the output, as in src/arch/shapes.c.
MODELS = {('Gemma 2 2B', 'q4_k'): (26, 2304, 9216, 2048, 2048, 256000),
          ('Gemma 3 1B', 'q8_0'): (26, 1152, 6912, 1024, 512, 262144)}
REACHED = 0.85       # of a memory's bandwidth, by kernels that do nothing but read
DISPATCH = 4e-6      # seconds from the end of a dispatch until the next is under way; a layer has 6
LATENCY = 0.5e-6     # seconds that a load takes from a busy memory,
LOAD = 12            # and the bytes that it brings to a lane
CACHE = 1            # bytes that a lane gets from caches or shared memory a clock
MOST_NORMED = 256    # workgroups of a matrix with a norm before it (matvec in src/ops/ops.c)

def matrices(layers, d_model, ffn_dim, q_dim, kv_dim, vocab):
    """Of a decode step: the use of matvec, rows, columns, and how many there are."""
    return (('normed', q_dim + kv_dim, d_model, layers), ('plain', d_model, q_dim, layers),
            ('gated', 2 * ffn_dim, d_model, layers), ('plain', d_model, ffn_dim, layers), ('normed', vocab, d_model, 1))

class Layout(collections.namedtuple('Layout', 'rows workgroup subgroup width lanes')):
    """Of matvec. subgroup: the size that is asked for, or 0.  lanes: the size that it has."""
    def __str__(self):
        width, subgroup = f'x{self.width}' if self.width > 1 else '', f'/{self.subgroup}' if self.subgroup else ''
        return f'{self.rows}x{self.workgroup}{width}{subgroup}'

def read_layouts(paths):
    """(GPU, kernel, use): Layout, of the kernels of decode steps."""
    layouts = {}
    for (gpu, kernel, spec), cell in (item for path in paths for item in read_table(path)[1].items()):
        if not re.match('matvec_(?!rows)', kernel): continue
        values = [int(x) for x in spec.split(',')]
        workgroup, rows, cols, norm, _, _, glu, _, width = values[:9]
        use = f"{'gated' if glu else 'normed' if norm else 'plain'},{rows}"
        layout = Layout(rows, workgroup, sum(values[SUBGROUP_ID:SUBGROUP_ID + 1]), width, int(cell.split('/')[0]))
        if cols == 1 and not of_experts(values): layouts[gpu, kernel, use] = layout
    return layouts

def default_rows(gpu, use, n_rows):
    """As pd_tuning_get in src/ops/tuning.c."""
    rows, (enough, lanes) = 8 if use == 'plain' else 4, SMALLEST_SUBGROUP[gpu]
    while use != 'gated' and rows > 2 and n_rows // rows * lanes < enough: rows //= 2
    return rows

def kernel_of(known, gpu, dtype, *uses):
    """The first that is known of (GPU, kernel, use)."""
    keys = ((gpu, kernel, use) for use in uses for kernel in (f'matvec_dot_{dtype}', f'matvec_{dtype}'))
    return next(key for key in keys if key in known)

def times_of(gpu, kernel, use, cell, layout, n_rows, n_cols):
    """Seconds that a matrix takes where nothing but memory, caches, instructions or latency holds it up. Lanes wait
    where a row has no units for all of them, and there may be too few rows for subgroups that fill the GPU. x comes
    from caches or shared memory: of the bytes under way only those of weights are memory's."""
    _, all_lanes, unit_lanes, mhz, gbs = GPUS[gpu]
    rows, lanes = layout.rows, layout.lanes
    dtype = kernel.split('_', 2)[2] if 'dot' in kernel else kernel.split('_', 1)[1]
    units, step = n_cols / (32 if 'dot' in kernel else unit_of(dtype)), lanes * layout.width
    slots, (loads, waves) = float(cell.split('/')[2]), map(int, cell.split('/')[3].split('x'))
    subgroups = min(n_rows / rows, waves * all_lanes / unit_lanes, math.inf if use == 'plain'
                    else MOST_NORMED * layout.workgroup / lanes)
    size, weights = n_rows * n_cols * BITS[dtype] / 8, n_rows * n_cols * math.ceil(units / step) * step / units
    rate, x = min(all_lanes, subgroups * unit_lanes) * mhz * 1e6, 4 / rows
    loaded = loads * LOAD * (BITS[dtype] / (BITS[dtype] + 8 * x) if use == 'plain' else 1)
    return {'memory': size / (gbs * 1e9 * REACHED), 'cache': weights * (BITS[dtype] / 8 + x) / (rate * CACHE),
            'instructions': weights * slots / rate, 'latency': size * LATENCY / (subgroups * lanes * loaded)}

def predict_step(table, layouts, gpu, dtype, shape):
    """Seconds of a decode step, and those of each thing that could bind it. A matrix takes as long as the slowest. Not
    every type is compiled for as few rows at a time as the smallest matrices take: more rows stand for them."""
    parts = collections.Counter(dispatches=DISPATCH * 6 * shape[0])
    seconds = parts['dispatches']
    for use, n_rows, n_cols, n in matrices(*shape):
        rows = default_rows(gpu, use, n_rows)
        key = kernel_of(table, gpu, dtype, *(f'{use},{more}' for more in (rows, 2 * rows, 4 * rows)))
        times = times_of(gpu, key[1], use, table[key], layouts[key], n_rows, n_cols)
        parts.update({what: n * time for what, time in times.items()})
        seconds += n * max(times.values())
    return seconds, parts

def predict(path, *vendors):
    table, layouts = read_table(path)[1], read_layouts(vendors)
    columns = 'memory', 'cache', 'instructions', 'latency', 'dispatches'
    print('Predictions, not measurements: a decode step at the start of a context, by instructions.txt and data')
    print(f'sheets ({REACHED:.0%} of the bandwidth, the highest clock, {LATENCY * 1e9:g} ns until a load is there,')
    print(f'{DISPATCH * 1e6:g} us between dispatches).')
    for (name, dtype), shape in MODELS.items():
        print(f'\n{name + " " + dtype:50} ms by itself: ' + ' '.join(columns) + '  bound by')
        for gpu in (gpu for gpu in GPUS if any(key[0] == gpu for key in table)):
            seconds, parts = predict_step(table, layouts, gpu, dtype, shape)
            print(f'{gpu:8} {GPUS[gpu][0]:26} {1 / seconds:6.1f} tokens/s predicted  '
                  + ' '.join(f'{1000 * parts[c]:{len(c)}.2f}' for c in columns), ' ' + max(parts, key=parts.get))

def read_cells(path):
    """(GPU, kernel, use): a list of (Layout, cell). Of what `layouts` has written."""
    found = collections.defaultdict(list)
    for line in open(path):
        gpu, kernel, use, *layout, cell = line.split()
        found[gpu, kernel, use].append((Layout(*map(int, layout)), cell))
    return found

def best_of(gpu, kernel, use, known, sizes):
    """The layout that is predicted to be best for matrices of one use and number of rows; and the default's time by
    that of the best."""
    times = {layout: sum(max(times_of(gpu, kernel, use, cell, layout, *size).values()) for size in sizes)
             for layout, cell in known}
    best = min(times, key=lambda layout: (float(f'{times[layout]:.3g}'), layout.subgroup > 0, layout.width))
    usual = default_rows(gpu, use, sizes[0][0]), 1, 64 if re.match(r'a\d', gpu) else 0   # Adreno
    default = next(layout for layout in times if (layout.rows, layout.width, layout.subgroup) == usual)
    return best, times[default] / times[best]

def best_layouts(driver, path):
    """Where the default takes at most 1 % longer than the best layout, it is as good."""
    known, sizes = read_cells(path), collections.defaultdict(list)
    for shape in MODELS.values():
        for use, n_rows, n_cols, _ in matrices(*shape): sizes[use, n_rows].append((n_rows, n_cols))
    print(f'# Predictions, not measurements, from what {driver} makes of matvec (tools/pipelines --layouts): the best')
    print('# layout (rows x workgroup x width / subgroup) for the matrices of Gemma 2 2B and Gemma 3 1B, by their use')
    print('# and number of rows, and how much longer the default takes; - where it takes at most 1 % longer.')
    print('gpu type', *(f'{use},{n_rows}' for use, n_rows in sizes))
    gpus = [gpu for gpu in GPUS if any(key[0] == gpu for key in known)]
    for gpu, dtype in ((gpu, dtype) for gpu in gpus for dtype in ('f16', 'q8_0', 'q4_0', 'q4_k', 'q6_k')):
        row = []
        for (use, n_rows), group in sizes.items():
            key = kernel_of(known, gpu, dtype, use)
            best, ratio = best_of(gpu, key[1], use, known[key], group)
            row.append('-' if ratio < 1.01 else f'{best}:+{ratio - 1:.0%}')
        print(gpu, dtype, *row)

if __name__ == '__main__':
    command, *arguments = sys.argv[1:]
    if command == 'predict': predict(*arguments)
    elif command == 'best-layouts': best_layouts(*arguments)
    else: sys.exit(__doc__)
