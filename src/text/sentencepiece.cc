#include <sentencepiece_processor.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
#include "text/sentencepiece.h"
}

struct pd_sentencepiece {
    sentencepiece::SentencePieceProcessor processor;
    bool lines_apart;
};

static_assert(sizeof(int) == sizeof(int32_t), "ids are handed over as they are");

namespace {

/* sentencepiece needs about a hundred bytes per byte of text: long texts go in cuts of about this. */
constexpr size_t CUT_SIZE = size_t{1} << 16;

/* sentencepiece's own status, or absl's where it is built with that. */
template <typename Status> peridot_status check(const Status &status)
{
    if (status.ok()) return PERIDOT_OK;
    return pd_fail(PERIDOT_ERROR_FORMAT, "sentencepiece refuses the vocabulary: %.300s", status.ToString().c_str());
}

/* No exception may pass into C. */
template <typename Function> peridot_status guarded(const Function &function)
{
    try {
        return function();
    } catch (const std::bad_alloc &) {
        return pd_fail(PERIDOT_ERROR_MEMORY, "out of memory in sentencepiece");
    } catch (const std::exception &e) {
        return pd_fail(PERIDOT_ERROR_FORMAT, "sentencepiece: %.300s", e.what());
    } catch (...) {
        return pd_fail(PERIDOT_ERROR_FORMAT, "sentencepiece failed");
    }
}

/* Size of the first cut: all, or up to the end of the line breaks after CUT_SIZE, where no merge can reach across. */
size_t first_cut(const pd_sentencepiece *sp, std::string_view text)
{
    if (!sp->lines_apart || text.size() <= CUT_SIZE) return text.size();
    size_t line_end = text.find('\n', CUT_SIZE);
    return std::min(text.find_first_not_of('\n', line_end), text.size());
}

peridot_status encode_cut(pd_ids *out, const pd_sentencepiece *sp, std::string_view text)
{
    std::vector<int> ids;
    peridot_status status = pd_text_check_span(text.size());
    if (status == PERIDOT_OK) status = check(sp->processor.Encode(text, &ids));
    return status == PERIDOT_OK ? pd_ids_append(out, ids.data(), ids.size()) : status;
}

}

extern "C" peridot_status pd_sentencepiece_create(pd_sentencepiece **out, const void *model, size_t size,
                                                  bool lines_apart)
{
    *out = nullptr;
    return guarded([&] {
        auto sp = std::make_unique<pd_sentencepiece>();
        sp->lines_apart = lines_apart;
        peridot_status status = check(sp->processor.LoadFromSerializedProto({static_cast<const char *>(model), size}));
        if (status == PERIDOT_OK) *out = sp.release();
        return status;
    });
}

extern "C" void pd_sentencepiece_free(pd_sentencepiece *sp)
{
    delete sp;
}

extern "C" peridot_status pd_sentencepiece_encode(pd_ids *out, const pd_sentencepiece *sp, const char *text,
                                                  size_t size, bool space_before)
{
    return guarded([&] {
        peridot_status status = PERIDOT_OK;
        std::string_view rest(text, size);
        for (bool space = space_before; status == PERIDOT_OK && !rest.empty(); space = false) {
            std::string_view cut = rest.substr(0, first_cut(sp, rest));
            status = encode_cut(out, sp, space ? " " + std::string(cut) : cut);
            rest.remove_prefix(cut.size());
        }
        return status;
    });
}
