/* Which addresses images may be fetched from: those of the public Internet. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "serve/pictures/pictures.h"

typedef bool is_what(const struct sockaddr *address);

static bool is(is_what *what, const char *text)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } a;
    memset(&a, 0, sizeof a);
    a.any.sa_family = strchr(text, ':') ? AF_INET6 : AF_INET;
    void *to = a.any.sa_family == AF_INET6 ? (void *)&a.six.sin6_addr : (void *)&a.four.sin_addr;
    assert_int_equal(inet_pton(a.any.sa_family, text, to), 1);
    return what(&a.any);
}

static void test_public(void **state)
{
    static const char *const addresses[] = {
        "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
        "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0",
        "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2001:200::1", "2001:4860:4860::8888",
        "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1", "3fff:1000::1",
    };
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        if (!is(serve_address_is_public, addresses[i])) fail_msg("%s is refused", addresses[i]);
}

static void test_others(void **state)
{
    static const char *const addresses[] = {
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1",
        "127.255.255.255", "169.254.0.0", "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.1", "192.0.2.1",
        "192.88.99.1", "192.168.0.1", "198.18.0.0", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
        "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::1.1.1.1", "::ffff:127.0.0.1",
        "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::1", "100::1",
        "2001::1", "2001:10::1", "2001:db8::1", "2002:7f00:1::1", "2002:a00:1::1", "fc00::1", "fd00::1", "fe80::1",
        "fec0::1", "ff02::1", "3fff:fff::1",
        "4000::1",
    };
    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        if (is(serve_address_is_public, addresses[i])) fail_msg("%s is taken for a public address", addresses[i]);
    assert_false(serve_address_is_public(&(struct sockaddr){.sa_family = AF_UNIX}));
}

static uint64_t number;

static bool take_number(const struct sockaddr *address)
{
    number = serve_address_number(address);
    return true;
}

static void test_loopback(void **state)
{
    static const char *const here[] = {"127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1"};
    static const char *const others[] = {"126.0.0.1", "128.0.0.1", "0.0.0.0", "::", "::2", "1::1", "::127.0.0.1",
                                         "::ffff:1.1.1.1", "::ffff:0.0.0.1"};
    (void)state;
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        if (!is(serve_address_is_loopback, here[i])) fail_msg("%s is not taken for this machine", here[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is(serve_address_is_loopback, others[i])) fail_msg("%s is taken for this machine", others[i]);
}

static uint64_t number_of(const char *text)
{
    number = 0;
    is(take_number, text);
    return number;
}

/* Whose requests are one client's. */
static void test_number(void **state)
{
    (void)state;
    assert_true(number_of("10.0.0.1") != number_of("10.0.0.2"));
    assert_true(number_of("10.0.0.1") == number_of("::ffff:10.0.0.1"));
    assert_true(number_of("2001:db8:1:2::3") == number_of("2001:db8:1:2:4::5"));
    assert_true(number_of("2001:db8:1:2::3") != number_of("2001:db8:1:3::3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_public), cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_loopback), cmocka_unit_test(test_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
