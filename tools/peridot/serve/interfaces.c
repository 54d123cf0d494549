#include "read.h"
#include "params.h"
#include "tools.h"
#include "wire.h"

const struct serve_interface *serve_interface_get(enum serve_api id)
{
    static const struct serve_interface *const all[SERVE_N_APIS] = {
        [SERVE_CHAT] = &serve_wire_chat, [SERVE_COMPLETIONS] = &serve_wire_completions,
        [SERVE_RESPONSES] = &serve_wire_responses, [SERVE_EMBEDDINGS] = &serve_wire_embeddings,
        [SERVE_TOKENIZE] = &serve_wire_tokenize, [SERVE_DETOKENIZE] = &serve_wire_detokenize,
        [SERVE_MESSAGES] = &serve_wire_messages, [SERVE_COUNT_TOKENS] = &serve_wire_count_tokens,
        [SERVE_OLLAMA_CHAT] = &serve_wire_ollama_chat, [SERVE_GENERATE] = &serve_wire_generate,
        [SERVE_EMBED] = &serve_wire_embed, [SERVE_EMBED_ONE] = &serve_wire_embed_one, [SERVE_SHOW] = &serve_wire_show,
        [SERVE_RERANK] = &serve_wire_rerank, [SERVE_COMPLETION] = &serve_wire_completion,
        [SERVE_INFILL] = &serve_wire_infill, [SERVE_APPLY_TEMPLATE] = &serve_wire_apply_template,
        [SERVE_LIST_TOOLS] = &serve_wire_list_tools, [SERVE_CALL_TOOL] = &serve_wire_call_tool,
    };
    return all[id];
}
