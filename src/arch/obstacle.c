/* What known families have that is not computed here. */
#include "arch/family.h"

#include "base/num.h"

#include <string.h>

/* model_type of config.json and GGUF's general.architecture, with spaces around each. */
static const struct { const char *obstacle, *names; } rows[] = {
    {"four streams of activations (AltUp)", " gemma3n gemma3n_text "},
    {"a prompt with an image, all of which sees all of it", " paligemma "},
    {"layers that are linear recurrences (RG-LRU)", " recurrent_gemma recurrentgemma "},
    {"an encoder, to whose text the decoder attends",
     " t5gemma t5gemma2 t5 t5encoder mt5 umt5 bart mbart pegasus marian m2m_100 whisper "},
    {"blocks of tokens that are written together, by denoising",
     " diffusion_gemma diffusion_gemma_text dream llada llada-moe rnd1 "},
    {"attention in chunks, and layers without rotation", " llama4 llama4_text "},
    {"layers that attend to an image (cross-attention)", " mllama mllama_text_model "},
    {"layers with state-space blocks (Mamba)",
     " mamba mamba2 falcon_mamba jamba bamba zamba zamba2 falcon_h1 falcon-h1 granitehybrid nemotron_h "
     "nemotron_h_moe plamo2 olmo_hybrid "},
    {"layers that are linear recurrences (gated delta rule)",
     " qwen3_next qwen3next qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text qwen35 qwen35moe kimi_linear "
     "kimi-linear "},
    {"layers that are linear recurrences (RWKV)", " rwkv rwkv6 rwkv6qwen2 rwkv7 arwkv7 "},
    {"layers that are short convolutions", " lfm2 lfm2_moe lfm2moe lfm3 "},
    {"attention sinks, and experts in place of its gated units", " gpt_oss gpt-oss "},
    {"keys and values in a compressed form (MLA)",
     " deepseek_v2 deepseek_v3 deepseek_v32 deepseek2 minicpm3 kimi_k25 glm4_moe_lite mistral4 longcat_flash youtu "
     "plm "},
    {"experts in place of its gated units",
     " mixtral qwen2_moe qwen2moe qwen3_moe qwen3moe granitemoe granitemoeshared olmoe phimoe dbrx grok deepseek "
     "dots1 ernie4_5_moe ernie4_5-moe bailingmoe bailingmoe2 hunyuan_v1_moe hunyuan-moe glm4_moe glm4moe "
     "minimax-m2 minimax_m2 smallthinker grovemoe afmoe flex_olmo exaone_moe exaone-moe arctic jetmoe "},
    {"norms that centre their vector (LayerNorm)",
     " gpt2 gptj gpt_j gpt_neo gpt_neox gptneox gpt_bigcode starcoder starcoder2 bloom mpt falcon phi phi2 opt "
     "stablelm cohere cohere2 command-r nemotron codeshell jais olmo persimmon openelm orion "},
    {"rotation by an image's rows and columns (M-RoPE)",
     " qwen2_vl qwen2_5_vl qwen2vl qwen3_vl qwen3vl qwen3_vl_moe qwen3vlmoe glm4v ernie4_5_vl_moe paddleocr "
     "hunyuan_vl "},
    {"attention to later tokens, of an encoder",
     " bert roberta xlm-roberta distilbert albert electra deberta deberta-v2 modernbert modern-bert nomic_bert "
     "nomic-bert jina-bert-v2 jina-bert-v3 eurobert neo-bert mpnet "},
};

const char *pd_family_obstacle(const char *name, size_t size)
{
    char word[64];
    if (size + 3 > sizeof word || memchr(name, ' ', size) || memchr(name, 0, size)) return NULL;
    word[0] = word[size + 1] = ' ';
    memcpy(word + 1, name, size);
    word[size + 2] = 0;
    for (size_t i = 0; i < PD_COUNT(rows); i++)
        if (strstr(rows[i].names, word)) return rows[i].obstacle;
    return NULL;
}
