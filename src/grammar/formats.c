/* Each pattern is of valid texts alone, and of those that are useful: RFC 3339 for dates and times, without leap
 * seconds; RFC 5321 without quotes; RFC 1123; RFC 4291; RFC 9562; RFC 3986 with a name that DNS could have after //,
 * and without an empty path; RFC 6901; RFC 6570. What is international is written in ASCII; a regex has one level of
 * groups. */
#include "grammar/formats.h"

#include "base/num.h"

#include <string.h>

#define HOUR "([01][0-9]|2[0-3])"
#define SIXTY "[0-5][0-9]"
#define TIME HOUR ":" SIXTY ":" SIXTY "(\\.[0-9]{1,9})?(Z|[+-]" HOUR ":" SIXTY ")"
#define LEAP "(0[48]|[2468][048]|[13579][26])"
#define YEAR "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
#define DATE "(" YEAR "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|" \
             "02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}" LEAP "|" LEAP "00)-02-29)"
#define COUNT "[0-9]{1,6}"
#define CLOCK "T(" COUNT "H(" COUNT "M(" COUNT "S)?)?|" COUNT "M(" COUNT "S)?|" COUNT "S)"
#define DAYS "(" COUNT "D|" COUNT "M(" COUNT "D)?|" COUNT "Y(" COUNT "M(" COUNT "D)?)?)"

#define LABEL "[A-Za-z0-9]([A-Za-z0-9]|-[A-Za-z0-9]){0,30}"
#define HOST LABEL "(\\." LABEL "){0,3}"
#define EMAIL "^[A-Za-z0-9_+-]{1,20}(\\.[A-Za-z0-9_+-]{1,20}){0,2}@" LABEL "(\\." LABEL "){1,3}$"
#define BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4 BYTE "(\\." BYTE "){3}"
#define HEX "[0-9a-fA-F]"
#define GROUP HEX "{1,4}"
#define IPV6 "((" GROUP ":){7}" GROUP "|(" GROUP ":){6}" IPV4 "|::(" GROUP "(:" GROUP "){0,5})?|" \
             "(" GROUP ":){1}(:" GROUP "){1,6}|(" GROUP ":){2}(:" GROUP "){1,5}|(" GROUP ":){3}(:" GROUP "){1,4}|" \
             "(" GROUP ":){4}(:" GROUP "){1,3}|(" GROUP ":){5}(:" GROUP "){1,2}|(" GROUP ":){6}:" GROUP "|" \
             "(" GROUP ":){1,7}:|::(ffff:)?" IPV4 ")"

#define ESCAPED "%" HEX HEX
#define REST "([A-Za-z0-9]|-[A-Za-z0-9])*"
#define URI_HOST "(([A-Za-z0-9]" REST "\\.)*[A-Za-z]" REST "|" IPV4 "|\\[" IPV6 "\\])"
#define PATH_CHAR "([A-Za-z0-9._~!$&'()*+,;=:@-]|" ESCAPED ")"
#define USER "(([A-Za-z0-9._~!$&'()*+,;=:-]|" ESCAPED ")+@)?"
#define PORT "(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
#define AUTHORITY USER URI_HOST PORT
#define SEGMENTS "(/" PATH_CHAR "*)*"
#define ROOTED "/(" PATH_CHAR "+" SEGMENTS ")?"
#define AFTER_PATH "(\\?([/?]|" PATH_CHAR ")*)?(#([/?]|" PATH_CHAR ")*)?"
#define URI "[A-Za-z][A-Za-z0-9+.-]*:(//" AUTHORITY SEGMENTS "|" ROOTED "|" PATH_CHAR "+" SEGMENTS ")" AFTER_PATH
#define FILE_URI "file://" ROOTED
#define RELATIVE "(//" AUTHORITY SEGMENTS "|" ROOTED "|([A-Za-z0-9._~!$&'()*+,;=@-]|" ESCAPED ")+" SEGMENTS ")?" \
                 AFTER_PATH

#define POINTER "(/([^~/]|~[01])*)*"
#define VARIABLE "[A-Za-z0-9_]+(\\.[A-Za-z0-9_]+)*(:[1-9][0-9]{0,3}|\\*)?"
#define TEMPLATE "([A-Za-z0-9._~:/?#@!$&()*+,;=-]|" ESCAPED "|\\{[+#./;?&]?" VARIABLE "(," VARIABLE ")*\\})*"
#define ATOM "([A-Za-z0-9 _,:;<>=@/\"'#%&~!-]|\\.|\\\\[dwsDWS.]|\\[\\^?[A-Za-z0-9_ ]+\\])"
#define REPEAT "([*+?]|\\{[1-9]\\})?"
#define SEQUENCE "(" ATOM REPEAT ")*"
#define EXPRESSION "\\^?(" ATOM REPEAT "|\\(" SEQUENCE "(\\|" SEQUENCE ")*\\)" REPEAT ")*\\$?"

const char *pd_format_pattern(const char *name)
{
    static const struct {
        const char *name, *pattern;
    } formats[] = {
        {"date", "^" DATE "$"},
        {"time", "^" TIME "$"},
        {"date-time", "^" DATE "T" TIME "$"},
        {"duration", "^P(" DAYS "(" CLOCK ")?|" CLOCK "|" COUNT "W)$"},
        {"email", EMAIL},
        {"idn-email", EMAIL},
        {"hostname", "^" HOST "$"},
        {"idn-hostname", "^" HOST "$"},
        {"ipv4", "^" IPV4 "$"},
        {"ipv6", "^" IPV6 "$"},
        {"uuid", "^" HEX "{8}-" HEX "{4}-" HEX "{4}-" HEX "{4}-" HEX "{12}$"},
        {"uri", "^(" URI "|" FILE_URI ")$"},
        {"uri-reference", "^(" URI "|" FILE_URI "|" RELATIVE ")$"},
        {"iri", "^(" URI "|" FILE_URI ")$"},
        {"iri-reference", "^(" URI "|" FILE_URI "|" RELATIVE ")$"},
        {"json-pointer", "^" POINTER "$"},
        {"relative-json-pointer", "^(0|[1-9][0-9]{0,5})(#|" POINTER ")$"},
        {"uri-template", "^" TEMPLATE "$"},
        {"regex", "^" EXPRESSION "$"},
    };
    for (size_t i = 0; i < PD_COUNT(formats); i++)
        if (strcmp(formats[i].name, name) == 0) return formats[i].pattern;
    return NULL;
}
