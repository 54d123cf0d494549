#!/usr/bin/env python3
"""How fast models would be on GPUs that need not be there, by what instructions.py has counted in the hot loops of the
kernels and by the GPUs' data sheets. A matrix takes as long as what binds it; llama.cpp's kernels are predicted in the
same way, and what the speeds published for it say of the model is what its predictions are corrected by.

  predict.py predict PUBLISHED TABLES...  tests/reports/published.txt, and of tools/pipelines instructions.txt and those
                                          of the vendors; writes the predicted tokens/s of models on each GPU
  predict.py best-layouts DRIVER CELLS    what `instructions.py layouts` has written; writes the layouts of matvec that
                                          are predicted to be best, and what the defaults lose
"""
import collections, math, re, sys

from instructions import BITS, SUBGROUP_ID, has_bias, of_experts, read_table, unit_of

Gpu = collections.namedtuple('Gpu', 'product lanes unit mhz gbs')

# For each GPU that kernels are compiled for, a product that has it: lanes (32-bit instructions issued a clock), those
# of what keeps its waves (a SIMD, EU, SM or core), MHz (the highest), GB/s, and where that is published. Memory that a
# processor shares with its GPU counts whole.
GPUS = {gpu: Gpu(product, int(lanes), int(unit), int(mhz), float(gbs)) for gpu, product, lanes, unit, mhz, gbs, _ in (
    (part.strip() for part in row.split('|')) for row in """
vega10  | Radeon RX Vega 64          | 4096 |  16 | 1546 | 483.8 | AMD, product page: 64 compute units of 64
renoir  | Ryzen 7 4800U (Vega 8)     |  512 |  16 | 1750 |  68.3 | AMD, product page: 8 graphics cores; LPDDR4-4266
navi10  | Radeon RX 5700 XT          | 2560 |  32 | 1905 | 448   | AMD, product page
navi21  | Radeon RX 6800 XT          | 4608 |  32 | 2250 | 512   | AMD, product page
vangogh | Steam Deck                 |  512 |  32 | 1600 |  88   | Valve, tech specs: 8 units; LPDDR5-5500, 128 bits
navi31  | Radeon RX 7900 XTX         | 6144 |  32 | 2500 | 960   | AMD, product page; dual issue is not counted on
phoenix | Ryzen 7 7840U (780M)       |  768 |  32 | 2700 | 120   | AMD, product page: 12 graphics cores; LPDDR5x-7500
gfx1150 | Ryzen AI 9 HX 370 (890M)   | 1024 |  32 | 2900 | 120   | AMD, product page: 16 graphics cores; LPDDR5x-7500
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

# A core (compute unit, subslice, Xe core or SM): its lanes, and the bytes that it gets a clock from shared memory and
# from the L2 cache. AMD: 128 from the LDS (RDNA whitepaper); its slides have 2048 and 3072 from L2 for 80 and 96 units.
# Intel: 64 each for a subslice of 8 EUs (Gen9 and Gen11 papers), of later ones twice as much shared memory for twice
# the lanes. NVIDIA: 32 banks of 4; L2 as measured by many. Qualcomm publishes nothing: as for the others.
Core = collections.namedtuple('Core', 'vendor lanes shared l2')
CORES = {gpu: core for core, gpus in (
    (Core('AMD', 64, 128, 32), 'vega10 renoir navi10 navi21 vangogh navi31 phoenix gfx1150 gfx1151 gfx1201'),
    (Core('Intel', 64, 64, 64), 'skl icl'), (Core('Intel', 128, 128, 64), 'tgl adl dg2 mtl lnl bmg'),
    (Core('NVIDIA', 128, 128, 64), 'pascal turing ampere'),
    (Core('Qualcomm', 256, 128, 64), 'a630 a660 a730 a740 a750')) for gpu in gpus.split()}

# Multiply-adds of fp16 with sums in fp32 that matrix units do a clock for each of the lanes above: AMD's and Intel's
# TFLOPS (122.8 of a 7900 XTX, 195 of a 9070 XT; XMX 128 operations a clock and engine of 8 lanes, 256 of 16), half of
# NVIDIA's with sums in fp16. On AMD they are issued in the place of vector instructions. In a wave of 64, RDNA 3 keeps
# each element of what is multiplied four times.
MATRIX = {'navi31': 4, 'phoenix': 4, 'gfx1150': 4, 'gfx1151': 4, 'gfx1201': 8, 'dg2': 8, 'lnl': 8, 'bmg': 8,
          'turing': 2, 'ampere': 2}
MATRIX_COPIES = {'navi31': 4, 'phoenix': 4, 'gfx1150': 4, 'gfx1151': 4}

# The lanes of the smallest subgroups, and how many lanes that take some rows of a matrix each are enough: of discrete
# GPUs, and of others.
SMALLEST_SUBGROUP = {gpu: (enough, int(lanes)) for enough, row in (
    (16384, 'vega10=64 navi10=32 navi21=32 navi31=32 gfx1201=32 dg2=8 bmg=16 pascal=32 turing=32 ampere=32'),
    (2048, 'renoir=64 vangogh=32 phoenix=32 gfx1150=32 gfx1151=32 skl=8 icl=8 tgl=8 adl=8 mtl=8 lnl=16 a630=64 a660=64 '
           'a730=64 a740=64 a750=64'))
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
        if cols == 1 and not of_experts(values) and not has_bias(values): layouts[gpu, kernel, use] = layout
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

def step_times(table, layouts, gpu, dtype, use, n_rows, n_cols):
    """Of a matrix of a decode step. Not every type is compiled for as few rows at a time as the smallest matrices take:
    more rows stand for them."""
    rows = default_rows(gpu, use, n_rows)
    key = kernel_of(table, gpu, dtype, *(f'{use},{more}' for more in (rows, 2 * rows, 4 * rows)))
    return times_of(gpu, key[1], use, table[key], layouts[key], n_rows, n_cols)

def predict_step(table, layouts, gpu, dtype, shape):
    """Seconds of a decode step, and those of each thing that could bind it. A matrix takes as long as the slowest."""
    parts = collections.Counter(dispatches=DISPATCH * 6 * shape[0])
    seconds = parts['dispatches']
    for use, n_rows, n_cols, n in matrices(*shape):
        times = step_times(table, layouts, gpu, dtype, use, n_rows, n_cols)
        parts.update({what: n * time for what, time in times.items()})
        seconds += n * max(times.values())
    return seconds, parts

# ---- prompts ----

PROMPT = 512            # tokens
PROMPT_DISPATCHES = 14  # of a layer
# Variants of matmul: the first that is compiled for a GPU is its default (src/ops/variants.c). Bytes of a weight and of
# an activation in shared memory, and the rows of a tile and of an invocation; coop has these among its constants.
# Activations for dot have one byte where weights are coarse: five bits and their scales.
VARIANTS = {'coop': (2, 2, None, None), 'dot': (1, 2, 64, 4), 'half': (2, 2, 64, 4), 'tile': (4, 4, 64, 4)}
# NVIDIA's own driver says that Pascal has dot products of bytes, and Mesa does not. What Mesa compiles for another GPU
# stands for that, in which each vector instruction takes a slot of Pascal's.
DOT_LIKE = {'pascal': 'turing'}
# The longest piece of a prompt that is submitted by itself: attention of so many tokens of a layer (PART_ROWS of
# src/ops/ops_.h), of heads of 128, at the end of the longest context; and what a watchdog allows for.
PIECE_TOKENS, PIECE_KEYS, WATCHDOG = 32, 131072, 2.0
PIECE_HEADS = {'Llama 3.1 8B': 32, '70B': 64}
DEPTHS, DEEP_MODEL = (0, 8192, 32768), 'Llama 3.1 8B q4_k'   # tokens before those of a prompt; a model without windows
# Attention of prompts: bytes of an element, keys of a tile, and what an invocation multiplies its 4 rows by, keys for
# scores and elements of values, where heads are of 128. A workgroup has 32 rows.
Attention = collections.namedtuple('Attention', 'kernel size tile keys elements')
ATTENTIONS = (Attention('attention_half_f16', 2, 64, 4, 8), Attention('attention_tile_f16', 4, 32, 2, 4))

# By matrices, 32 queries by tiles of 64 keys, of which subgroups share scores and elements of values (coop_subgroups of
# src/ops/attention.c): how many subgroups there are, and the rows and columns of a matrix.
COOP_ATTENTION = 'attention_coop_f16'
COOP_SHARES = {'Intel': (16, 8, 16), 'AMD': (4, 16, 16), 'NVIDIA': (4, 16, 16)}

def coop_shared(gpu):
    """Bytes to and from shared memory of a multiply-add, where heads are of 128."""
    n, m, across = COOP_SHARES[CORES[gpu].vendor]
    if gpu == 'dg2': across = 8
    keys, elements, queries, copies = 64, 128, 32, MATRIX_COPIES.get(gpu, 1)
    down = min(n, keys // m)
    read = (n // down * keys + down * queries) * elements + queries // across * keys * elements + n * queries * keys
    return (2 * (copies * read + 2 * keys * elements) + 10 * queries * keys) / (queries * keys * 2 * elements)

def attention_shared(one):
    """Bytes to and from shared memory of a multiply-add: half of them are of scores, half of values."""
    scores, values = 1 / 4 + 1 / one.keys + 1 / 32 + 1 / one.tile, 1 / 4 + 1 / one.elements + 1 / 32
    return one.size * (scores + values) / 2

# Issue slots, and bytes from shared memory, of a multiply-add of attention that is not counted, as llama.cpp's.
ATTENTION = 1.6, attention_shared(ATTENTIONS[-1]), 0

class Tile(collections.namedtuple('Tile', 'variant rows tokens part_rows part_tokens slots w_size x_size')):
    """Of a kernel for prompts. part: what an invocation, or a subgroup with matrices, multiplies of it; each reads its
    rows and tokens from shared memory for each column, and the tile's are written there once.  size: bytes there."""
    def shared(self, copies):
        read = copies * (self.w_size / self.part_tokens + self.x_size / self.part_rows)
        return read + self.w_size / self.tokens + self.x_size / self.rows

def name_of(variant, dtype): return f'matmul_{dtype}' if variant == 'tile' else f'matmul_{variant}_{dtype}'

def tiles_of(table, specs, gpu, dtype):
    """Of the default variant, those for more than 32 tokens."""
    column, gpu = (0, DOT_LIKE[gpu]) if gpu in DOT_LIKE else (2, gpu)
    variant = next(v for v in VARIANTS if specs.get((gpu, name_of(v, dtype))))
    w_size, x_size, rows, each = VARIANTS[variant]
    if variant == 'dot' and BITS[dtype] <= 6: x_size = 1
    name, tiles = name_of(variant, dtype), []
    for spec in specs[gpu, name]:
        if variant == 'coop': rows, tokens, part = spec[2], spec[3], tuple(spec[5:7])
        else: tokens, part = spec[1], (each, rows * spec[1] // each // spec[0])
        uses = ','.join(map(str, spec[:2])), f'{rows}x{tokens}'
        cell = next(table[gpu, name, use] for use in uses if (gpu, name, use) in table)
        if tokens > 32:
            tiles.append(Tile(variant, rows, tokens, *part, float(cell.split('/')[column]), w_size, x_size))
    return tiles

def read_specs(paths):
    """(GPU, kernel): the constants of matmul's pipelines that are not of experts."""
    specs = collections.defaultdict(list)
    for gpu, kernel, spec in (key for path in paths for key in read_table(path)[1]):
        values = [int(x) for x in spec.split(',')] if spec != '-' else []
        if kernel.startswith('matmul') and not of_experts(values) and not has_bias(values):
            specs[gpu, kernel].append(values)
    return specs

def product_times(sheet, like, tile, dtype, n_rows, n_cols):
    """Seconds that a matrix times the prompt takes where nothing else holds it up. Cores that have no tile in the last
    round wait. A matrix is read from memory for each row of tiles."""
    core, cores = CORES[like], sheet.lanes / CORES[like].lanes
    groups = math.ceil(n_rows / tile.rows) * math.ceil(PROMPT / tile.tokens)
    products, hertz = groups * tile.rows * tile.tokens * n_cols, sheet.mhz * 1e6
    clocks = products / sheet.lanes * math.ceil(groups / cores) * cores / groups
    vector, matrix = tile.slots * clocks, clocks / MATRIX[like] if tile.variant == 'coop' else 0
    if matrix and core.vendor == 'AMD': matrix += vector
    copies = MATRIX_COPIES.get(like, 1) if tile.variant == 'coop' else 1
    from_l2 = products * (BITS[dtype] / 8 / tile.tokens + tile.x_size / tile.rows)
    return {'vector': vector / hertz, 'matrix': matrix / hertz,
            'shared': tile.shared(copies) * clocks * core.lanes / core.shared / hertz,
            'L2': from_l2 / (core.l2 * cores * hertz),
            'memory': n_rows * n_cols * BITS[dtype] / 8 * math.ceil(PROMPT / tile.tokens) / (sheet.gbs * 1e9 * REACHED)}

def attention_binds(core, attention):
    """Clocks of a lane that a multiply-add of attention takes where only vector instructions, shared memory or matrix
    units hold it up."""
    slots, size, matrix = attention
    return {'vector': slots, 'shared': size * core.lanes / core.shared,
            'matrix': matrix + slots if matrix and core.vendor == 'AMD' else matrix}

def other_times(sheet, core, shape, attention, depth):
    """Of a prompt after depth tokens, what no matrix is: attention, of the keys before each position; activations,
    which every step of a layer reads and writes in fp32; and dispatches."""
    layers, d_model, ffn_dim, q_dim, kv_dim, _ = shape
    products = layers * 2 * q_dim * PROMPT * (depth + (PROMPT + 32) / 2)
    activations = layers * PROMPT * 4 * (13 * d_model + 6.5 * q_dim + 3 * kv_dim + 6.5 * ffn_dim)
    return {'attention': products * max(attention_binds(core, attention).values()) / (sheet.lanes * sheet.mhz * 1e6),
            'activations': activations / (sheet.gbs * 1e9 * REACHED),
            'dispatches': DISPATCH * PROMPT_DISPATCHES * layers}

def attention_of(table, gpu):
    """Issue slots, bytes from shared memory, and clocks of matrix units, of a multiply-add, by heads of 128."""
    if (gpu, COOP_ATTENTION, '128,4') in table:
        return (float(table[gpu, COOP_ATTENTION, '128,4'].split('/')[2]) / (2 * 128), coop_shared(gpu),
                1 / MATRIX[gpu])
    one = next((one for one in ATTENTIONS if (gpu, one.kernel, '128,4') in table), None)
    if not one: return ATTENTION
    return float(table[gpu, one.kernel, '128,4'].split('/')[2]) / (2 * 128), attention_shared(one), 0

def piece_time(sheet, core, n_heads, attention):
    """Seconds of the longest piece. A workgroup has 32 of its tokens' heads."""
    groups, cores = n_heads * PIECE_TOKENS / 32, sheet.lanes / core.lanes
    products = math.ceil(groups / cores) * 32 * PIECE_KEYS * 2 * 128   # of a core
    return products * max(attention_binds(core, attention).values()) / (core.lanes * sheet.mhz * 1e6)

def predict_prompt(sheet, like, tiles, dtype, shape, attention=ATTENTION, depth=0):
    """Seconds of a prompt, and those of each thing that could bind it. Of several tiles a matrix takes the fastest. The
    matrix after the last layer multiplies one token, as in a decode step."""
    parts = collections.Counter(other_times(sheet, CORES[like], shape, attention, depth))
    *layers, (_, vocab, d_model, _) = matrices(*shape)
    parts['memory'] = vocab * d_model * BITS[dtype] / 8 / (sheet.gbs * 1e9 * REACHED)
    seconds = sum(parts.values())
    for _, n_rows, n_cols, n in layers:
        times = min((product_times(sheet, like, tile, dtype, n_rows, n_cols) for tile in tiles),
                    key=lambda times: max(times.values()))
        parts.update({what: n * time for what, time in times.items()})
        seconds += n * max(times.values())
    return seconds, parts

# ---- hybrids ----

# Of layers of which three of four are recurrences, as in src/arch/shapes.c: layers, d_model, ffn_dim, key heads, value
# heads, d_k and d_v (the same), query heads and key heads of the others' attention, their head_dim, rows of the output.
Hybrid = collections.namedtuple('Hybrid', 'layers d_model ffn_dim n_k n_v d_k n_heads n_kv_heads head_dim vocab')
HYBRIDS = {'Qwen 3.5 0.8B': Hybrid(24, 1024, 3584, 16, 16, 128, 8, 2, 256, 248320),
           'Qwen 3.5 4B': Hybrid(32, 2560, 9216, 16, 32, 128, 16, 4, 256, 248320),
           'Qwen 3.5 9B': Hybrid(32, 4096, 12288, 16, 32, 128, 16, 4, 256, 248320)}
HYBRID_TYPE = 'q4_k'
MOST_RATIO = 1.3        # of a layer with a recurrence and one with attention, of as many weights
DELTA_DISPATCHES = 12   # of the former's prompts
STEP_DISPATCHES = 7     # of either, in a decode step
COLUMN_LANES = 8        # invocations that share a column of a state (src/ops/delta.c)

def rule_time(sheet, hybrid, slots, n_rows):
    """Seconds of the delta rule of a layer: by instructions, or as rows wait for one another and each for its loads."""
    lanes = hybrid.n_v * hybrid.d_k * COLUMN_LANES
    clocks = n_rows * lanes * hybrid.d_k / COLUMN_LANES * slots / min(sheet.lanes, lanes)
    return max(clocks / (sheet.mhz * 1e6), n_rows * LATENCY)

def mixers(hybrid):
    """Rows and columns of the matrices before and after a recurrence, and before and after attention with a gate."""
    v_dim, q_dim = hybrid.n_v * hybrid.d_k, hybrid.n_heads * hybrid.head_dim
    before = 2 * hybrid.n_k * hybrid.d_k + 2 * v_dim + 2 * hybrid.n_v
    return (before, v_dim), (2 * q_dim + 2 * hybrid.n_kv_heads * hybrid.head_dim, q_dim)

def layer_time(sheet, like, tiles, hybrid, mixer):
    """Seconds of a prompt in the matrices of a layer."""
    before, dim = mixer
    sizes = ((before, hybrid.d_model), (hybrid.d_model, dim), (2 * hybrid.ffn_dim, hybrid.d_model),
             (hybrid.d_model, hybrid.ffn_dim))
    return sum(min(max(product_times(sheet, like, tile, HYBRID_TYPE, *size).values()) for tile in tiles)
               for size in sizes)

def predict_hybrid_prompt(gpu, sheet, tiles, hybrid, slots, attention):
    """Seconds of a prompt; what the rule takes of it; and the time of a layer with a recurrence by that of one with
    attention whose matrices are the same."""
    gbs, recurs, attends = sheet.gbs * 1e9 * REACHED, *mixers(hybrid)
    head = hybrid.vocab * hybrid.d_model * BITS[HYBRID_TYPE] / 8 / gbs

    def rest(dim, per_row):   # activations of a layer, of which those of its mixer per_row
        shape = 1, hybrid.d_model, hybrid.ffn_dim, dim, 0, 0
        times = other_times(sheet, CORES[gpu], shape, attention, 0)
        return times['attention'], times['activations'] + PROMPT * 4 * per_row / gbs + times['dispatches']
    rule = rule_time(sheet, hybrid, slots, PROMPT)
    _, delta_rest = rest(0, 4 * recurs[0] + 8 * recurs[1])
    delta_rest += (DELTA_DISPATCHES - PROMPT_DISPATCHES) * DISPATCH
    attended, attention_rest = rest(attends[1], 0)
    of_delta = layer_time(sheet, gpu, tiles, hybrid, recurs) + rule + delta_rest
    of_attention = layer_time(sheet, gpu, tiles, hybrid, attends) + attended + attention_rest
    dense = layer_time(sheet, gpu, tiles, hybrid, recurs) + attended + attention_rest
    n_delta = hybrid.layers * 3 // 4
    seconds = head + n_delta * of_delta + (hybrid.layers - n_delta) * of_attention
    return seconds, n_delta * rule / seconds, of_delta / dense

def predict_hybrid_step(table, layouts, gpu, hybrid, slots):
    """Seconds of a decode step at the start of a context: matrices as others', and states, read and written once."""
    sheet, n_delta, (recurs, attends) = GPUS[gpu], hybrid.layers * 3 // 4, mixers(hybrid)

    def time(use, n_rows, n_cols):
        return max(step_times(table, layouts, gpu, HYBRID_TYPE, use, n_rows, n_cols).values())
    seconds = hybrid.layers * (time('gated', 2 * hybrid.ffn_dim, hybrid.d_model) + STEP_DISPATCHES * DISPATCH
                               + time('plain', hybrid.d_model, hybrid.ffn_dim)) \
        + time('normed', hybrid.vocab, hybrid.d_model)
    for n, (before, dim) in ((n_delta, recurs), (hybrid.layers - n_delta, attends)):
        seconds += n * (time('normed', before, hybrid.d_model) + time('plain', hybrid.d_model, dim))
    states = 2 * 4 * hybrid.n_v * hybrid.d_k ** 2
    return seconds + n_delta * max(states / (sheet.gbs * 1e9 * REACHED), rule_time(sheet, hybrid, slots, 1))

# ---- llama.cpp, and what is published for it ----

# The kernel that it takes for prompts on each GPU, and the GPU for which that was counted: the same, or one with such
# instructions. None was counted for Adrenos.
LLAMA = {gpu: (counted, kind) for counted, kind, gpus in (
    ('renoir', 'fp16', 'vega10 renoir'), ('navi10', 'fp16', 'navi10'), ('skl', 'fp16', 'skl icl'),
    ('tgl', 'int8', 'tgl adl dg2 mtl'), ('navi31', 'int8', 'navi21 vangogh pascal'),
    ('navi31', 'coop', 'navi31 phoenix gfx1150 gfx1151 gfx1201 turing ampere'), ('bmg', 'coop', 'lnl bmg'))
    for gpu in gpus.split()}
LLAMA_SUBGROUP = {'navi31': 64, 'bmg': 16}   # of those that multiply matrices
LLAMA_SIZES = {'coop': 2, 'int8': 1.125, 'fp16': 2}   # bytes in shared memory, of weights and activations alike
FITTED_TO = 'Llama 2 7B q4_0'
MODELS_PREDICTED = MODELS | {('Llama 2 7B', 'q4_0'): (32, 4096, 11008, 4096, 8192, 32000)}
SHAPES = {' '.join(model): shape for model, shape in MODELS_PREDICTED.items()} | {
    'Llama 3.1 8B q4_k': (32, 4096, 14336, 4096, 2048, 128256)}

Speed = collections.namedtuple('Speed', 'like sheet kernel prompt decode model')   # 0: not published

def read_published(path):
    """Speeds, for prompts ((counted for, kind), type): Tile, and for decode steps (GPU, type): slots."""
    rows = [[part.strip() for part in line.split('|')] for line in open(path) if line[0] != '#']
    speeds = [Speed(like, Gpu(product, int(lanes), 0, int(mhz), float(gbs)), (counted, kind), float(prompt or 0),
                    float(decode), model)
              for what, like, product, lanes, mhz, gbs, kind, counted, prompt, decode, model in
              (row for row in rows if row[0] == 'speed' and row[1] != 'like')]
    kernels = {}
    for _, counted, kind, dtype, slots, *tile in (row for row in rows if row[0] == 'kernel' and row[1] != 'counted'):
        n_rows, n_tokens, workgroup = map(int, tile)
        parts = workgroup // LLAMA_SUBGROUP[counted] if kind == 'coop' else workgroup
        each = n_rows * n_tokens // parts   # as square as can be
        part_rows = 2 ** (math.log2(each) // 2)
        kernels[(counted, kind), dtype] = Tile(kind, n_rows, n_tokens, part_rows, each / part_rows, float(slots),
                                               LLAMA_SIZES[kind], LLAMA_SIZES[kind])
    (*_, types), *steps = ((row[1].split(), row[2:]) for row in rows if row[0] == 'decode')
    steps = {(gpu, dtype): float(n) for gpus, slots in steps for gpu in gpus for dtype, n in zip(types, slots)}
    return speeds, kernels, steps

def llama_prompt(sheet, like, tile, model):
    """Tokens/s of a prompt by llama.cpp, or None where its kernel is not counted for such a GPU."""
    return tile and PROMPT / predict_prompt(sheet, like, [tile], model.split()[-1], SHAPES[model])[0]

def llama_decode(sheet, slots, model):
    """Tokens/s by llama.cpp, by memory or, where slots are known, by instructions."""
    weights = sum(n_rows * n_cols * n for _, n_rows, n_cols, n in matrices(*SHAPES[model]))
    memory = weights * BITS[model.split()[-1]] / 8 / (sheet.gbs * 1e9 * REACHED)
    return 1 / (max(memory, weights * slots / (sheet.lanes * sheet.mhz * 1e6)) + DISPATCH * 6 * SHAPES[model][0])

class Calibration:
    """rows: (vendor, product, model, predicted over published).  A vendor's constant is the inverse of the geometric
    mean of those that are fitted to, and for a vendor that has none the mean of the others'; spread: their geometric
    standard deviation, once corrected."""
    def __init__(self, rows):
        self.rows, logs = rows, collections.defaultdict(list)
        for vendor, _, model, ratio in rows:
            if model == FITTED_TO: logs[vendor].append(math.log(ratio))
        means = {vendor: sum(those) / len(those) for vendor, those in logs.items()}
        self.overall = math.exp(-sum(means.values()) / len(means))
        self.fitted = {vendor: math.exp(-mean) for vendor, mean in means.items()}
        rest = [x - means[vendor] for vendor, those in logs.items() for x in those]
        self.spread = math.exp(math.sqrt(sum(x * x for x in rest) / max(1, len(rest) - len(means))))

    def constant(self, vendor): return self.fitted.get(vendor, self.overall)

def calibrate(speeds, kernels, steps):
    """Of prompts and of decode steps."""
    prompts, decodes = [], []
    for like, sheet, kernel, prompt, decode, model in speeds:
        row, dtype = (CORES[like].vendor, sheet.product, model), model.split()[-1]
        tile, slots = kernels.get((kernel, dtype)), steps.get((like, dtype), 0)
        if prompt and tile: prompts.append((*row, llama_prompt(sheet, like, tile, model) / prompt))
        decodes.append((*row, llama_decode(sheet, slots, model) / decode))
    return Calibration(prompts), Calibration(decodes)

# ---- reports ----

def print_calibration(prompts, decodes):
    print("\nCalibration: llama.cpp's Vulkan backend (tests/reports/published.txt), predicted over published")
    print(f'{"":22} {"":17}  prompt  corrected  decode  corrected')
    of_prompts = {row[:3]: row[3] for row in prompts.rows}
    for *row, ratio in decodes.rows:
        prompt, vendor = of_prompts.get(tuple(row)), row[0]
        print(f'{row[1]:22} {row[2]:17}', f'{prompt:7.2f} {prompt * prompts.constant(vendor):10.2f}' if prompt
              else f'{"-":>7} {"-":>10}', f'{ratio:7.2f} {ratio * decodes.constant(vendor):10.2f}',
              *[] if row[2] == FITTED_TO else [' not fitted to'])
    for what, one in (('prompts', prompts), ('decode', decodes)):
        print(f'{what}: predictions times ' + ', '.join(f'{value:.2f} {vendor}' for vendor, value in one.fitted.items())
              + f', {one.overall:.2f} others (the mean); what is left: x/÷ {one.spread:.2f}')

def print_row(gpu, tokens, calibration, llama, parts, kernel=''):
    """tokens: a second, before the correction; llama: the same of llama.cpp, or None.  parts: seconds, by column."""
    speed = tokens * calibration.constant(CORES[gpu].vendor)
    print(f'{gpu:8} {GPUS[gpu].product:26} {speed:7.1f} tokens/s predicted x/÷ {calibration.spread:.2f} '
          + (f'{tokens / llama:5.2f}' if llama else '    -') + ' of llama.cpp '
          + ' '.join(f'{1000 * time:{max(8, len(c))}.2f}' for c, time in parts.items())
          + f'  {max(parts, key=parts.get)}{kernel}')

def gpus_with(table, kernels): return [gpu for gpu in GPUS if any(key[0] == gpu and key[1] in kernels for key in table)]

def models_with(table, columns, kernels_of):
    """Writes the head of each model, where a GPU has kernels for it. Yields its name, type, shape and the GPUs."""
    for (name, dtype), shape in MODELS_PREDICTED.items():
        gpus, model = gpus_with(table, kernels_of(dtype)), f'{name} {dtype}'
        if gpus: print(f'\n{model:78}ms by itself: ' + ' '.join(f'{c:>8}' for c in columns) + '  bound by')
        yield model, dtype, shape, gpus

def predict_decodes(table, layouts, steps, calibration):
    columns = 'memory', 'cache', 'instructions', 'latency', 'dispatches'
    print(f"""Predictions, not measurements: a decode step at the start of a context, by instructions.txt and data
sheets ({REACHED:.0%} of the bandwidth, the highest clock, {LATENCY * 1e9:g} ns until a load is there, {DISPATCH * 1e6:g} us
between dispatches), times a vendor's constant that is fitted to llama.cpp's published speeds (at the end), and so has
in it what its kernels lose beside instructions. x/÷: the error of the model where it can be checked.""")
    for model, dtype, shape, gpus in models_with(table, columns, lambda t: (f'matvec_{t}', f'matvec_dot_{t}')):
        for gpu in gpus:
            seconds, parts = predict_step(table, layouts, gpu, dtype, shape)
            llama = llama_decode(GPUS[gpu], steps.get((gpu, dtype), 0), model)
            print_row(gpu, 1 / seconds, calibration, llama, {c: parts[c] for c in columns})

def predict_prompts(table, specs, kernels, calibration):
    columns = 'vector', 'matrix', 'shared', 'L2', 'memory', 'attention', 'activations', 'dispatches'
    print(f"""
Predictions, not measurements: a prompt of {PROMPT} tokens, by the variant of matmul that comes first on a GPU (at the
end of a row, with its tiles), times a vendor's constant, too. vector: slots of vector instructions; matrix: matrix
units, which on AMD issue in the place of those (so both); shared, L2: bytes from shared memory and the L2 cache.
turing, ampere and gfx1201 are without matrices, which this driver lacks there: see mesa26.md.""")
    for model, dtype, shape, gpus in models_with(table, columns, lambda t: [name_of(v, t) for v in VARIANTS]):
        for gpu in gpus:
            tiles = tiles_of(table, specs, gpu, dtype)
            seconds, parts = predict_prompt(GPUS[gpu], gpu, tiles, dtype, shape, attention_of(table, gpu))
            llama = llama_prompt(GPUS[gpu], gpu, kernels.get((LLAMA.get(gpu), dtype)), model)
            kernel = f' ({tiles[0].variant} ' + ' '.join(f'{tile.rows}x{tile.tokens}' for tile in tiles) + ')'
            print_row(gpu, PROMPT / seconds, calibration, llama, {c: parts[c] for c in columns}, kernel)

# Published for llama.cpp's Vulkan backend on a Radeon 890M (Q4_K_M): prompt, generation. The memory, which binds steps,
# is as fast as that of the GPU that is like it.
HYBRIDS_PUBLISHED = {'Qwen 3.5 0.8B': (1337, 85), 'Qwen 3.5 4B': (346, 21), 'Qwen 3.5 9B': (249, 12)}
PUBLISHED_ON = 'phoenix', Gpu('Radeon 890M', 1024, 32, 2900, 120)

def predict_hybrids(table, layouts, specs, prompts, decodes):
    like, sheet = PUBLISHED_ON
    print(f"""
Predictions, not measurements: models of which three layers of four are recurrences, {HYBRID_TYPE}: tokens/s of a prompt
of {PROMPT} and of generation, times a vendor's constants; what the delta rule takes of the prompt; and how long a
layer with it takes by one with attention and matrices of the same sizes (at most {MOST_RATIO}).""")
    print(f'{"":35} ' + ' '.join(f'{name:>30}' for name in HYBRIDS))
    gpus = [gpu for gpu in gpus_with(table, ['delta']) if gpu in gpus_with(table, [f'matvec_{HYBRID_TYPE}',
                                                                                  f'matvec_dot_{HYBRID_TYPE}'])]
    over = []

    def row_of(gpu, sheet):
        cells, slots = [], float(table[gpu, 'delta', 'delta,128'].split('/')[2])
        for name, hybrid in HYBRIDS.items():
            seconds, part, ratio = predict_hybrid_prompt(gpu, sheet, tiles_of(table, specs, gpu, HYBRID_TYPE), hybrid,
                                                         slots, attention_of(table, gpu))
            vendor = CORES[gpu].vendor
            step = decodes.constant(vendor) / predict_hybrid_step(table, layouts, gpu, hybrid, slots)
            cells.append(f'{PROMPT / seconds * prompts.constant(vendor):9.1f} {step:8.1f} {part:5.1%} {ratio:5.2f}')
            if ratio > MOST_RATIO: over.append(f'{gpu} ({name})')
        return ' '.join(cells)
    for gpu in gpus: print(f'{gpu:8} {GPUS[gpu].product:26} ' + row_of(gpu, GPUS[gpu]))
    print(f'over {MOST_RATIO}: {", ".join(over) or "none"}')
    if like in gpus:
        print(f'{like:8} {sheet.product:26} ' + row_of(like, sheet))
        print(f'{"":8} {"published, llama.cpp Q4_K_M":26}' + ' '.join(
            f'{prompt:9} {step:8} {"":11}' for prompt, step in HYBRIDS_PUBLISHED.values()))

def predict_depths(table, specs, calibration):
    dtype = DEEP_MODEL.split()[-1]
    print(f"""
Predictions, not measurements: tokens/s of {PROMPT} tokens of a prompt after so many others, of {DEEP_MODEL},
times a vendor's constant; how much of the time is attention's, and what binds that where keys come from caches.""")
    print(f'{"":35} ' + ' '.join(f'{f"after {depth}":>18}' for depth in DEPTHS) + '  bound by')
    for gpu in gpus_with(table, [name_of(v, dtype) for v in VARIANTS]):
        attention, row = attention_of(table, gpu), []
        for depth in DEPTHS:
            seconds, parts = predict_prompt(GPUS[gpu], gpu, tiles_of(table, specs, gpu, dtype), dtype,
                                            SHAPES[DEEP_MODEL], attention, depth)
            speed = PROMPT / seconds * calibration.constant(CORES[gpu].vendor)
            row.append(f'{speed:12.1f} {parts["attention"] / seconds:5.0%}')
        binds = attention_binds(CORES[gpu], attention)
        print(f'{gpu:8} {GPUS[gpu].product:26} ' + ' '.join(row) + f'  {max(binds, key=binds.get)}')

def predict_pieces(table, calibration):
    print(f"""
Predictions, not measurements: seconds of the longest piece of a prompt that is submitted by itself, attention of
{PIECE_TOKENS} tokens of a layer over {PIECE_KEYS} keys, divided by a vendor's constant. Watchdogs of drivers and
systems take a device for lost after {WATCHDOG:g} s.""")
    print(f'{"":35} ' + ' '.join(f'{model:>12}' for model in PIECE_HEADS))
    over = []
    for gpu in (gpu for gpu in GPUS if any(key[0] == gpu for key in table)):
        seconds = [piece_time(GPUS[gpu], CORES[gpu], n_heads, attention_of(table, gpu))
                   / calibration.constant(CORES[gpu].vendor) for n_heads in PIECE_HEADS.values()]
        print(f'{gpu:8} {GPUS[gpu].product:26} ' + ' '.join(f'{s:12.3f}' for s in seconds))
        over += [f'{gpu} ({model})' for model, s in zip(PIECE_HEADS, seconds) if s > WATCHDOG / 4]
    print(f'over a quarter of that: {", ".join(over) or "none"}')

def predict(published, path, *vendors):
    table, (speeds, kernels, steps) = read_table(path)[1], read_published(published)
    of_prompts, of_decodes = calibrate(speeds, kernels, steps)
    predict_decodes(table, read_layouts(vendors), steps, of_decodes)
    specs = read_specs(vendors)
    predict_prompts(table, specs, kernels, of_prompts)
    predict_hybrids(table, read_layouts(vendors), specs, of_prompts, of_decodes)
    predict_depths(table, specs, of_prompts)
    predict_pieces(table, of_prompts)
    print_calibration(of_prompts, of_decodes)

# ---- layouts ----

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
