#define _GNU_SOURCE
#include "limit.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum phase { IDLE, SENDING, HEAD, BODY };

struct connection {
    int fd;
    enum phase phase;
    int lowat;             /* SO_RCVLOWAT as last set; 1 is the kernel's default */
    bool fresh;            /* nothing was answered on this socket yet */
    bool close_after;      /* the server said that it will close */
    struct request request;
    size_t index;          /* of the request that the work began with */
    size_t sent;
    size_t fill;           /* bytes of head and body received while the phase is HEAD */
    size_t predicted;      /* length of the last head: where the next body is expected */
    size_t got;            /* bytes of body received */
    size_t length;         /* bytes of body that the head announced */
    char head[HEAD_PROBE];
};

struct loop {
    const struct options *options;
    int epoll;
    struct sockaddr_storage address;
    socklen_t address_len;
    struct connection *connections;
    unsigned char *scratch;
    /* The round in progress. */
    const struct work *work;
    struct tally *tally;
    size_t next;
    size_t active;
};

static char last_complaint[4096];

int complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_complaint, sizeof last_complaint, format, arguments);
    va_end(arguments);
    return -1;
}

const char *complaint(void)
{
    return last_complaint;
}

static int fail(const char *what)
{
    return complain("%s: %s", what, strerror(errno));
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

struct loop *loop_open(const struct options *options)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return NULL;
    loop->options = options;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->connections = calloc(options->connections, sizeof *loop->connections);
    for (size_t i = 0; loop->connections && i < options->connections; i++)
        loop->connections[i].fd = -1;
    loop->scratch = map_memory(options->scratch);

    char port[8];
    snprintf(port, sizeof port, "%u", options->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int rc = getaddrinfo(options->host, port, &hints, &found);
    if (rc != 0)
        fprintf(stderr, "limit: can't resolve %s: %s\n", options->host, gai_strerror(rc));
    if (rc != 0 || loop->epoll < 0 || !loop->connections || !loop->scratch) {
        loop_close(loop);
        return NULL;
    }
    memcpy(&loop->address, found->ai_addr, found->ai_addrlen);
    loop->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    return loop;
}

void loop_close(struct loop *loop)
{
    for (size_t i = 0; loop->connections && i < loop->options->connections; i++)
        if (loop->connections[i].fd >= 0)
            close(loop->connections[i].fd);
    if (loop->epoll >= 0)
        close(loop->epoll);
    unmap_memory(loop->scratch, loop->options->scratch);
    free(loop->connections);
    free(loop);
}

static int connection_open(struct loop *loop, struct connection *c)
{
    c->fd = socket(loop->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return fail("socket");
    int one = 1, sndbuf = (int)loop->options->sndbuf;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (sndbuf && setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof sndbuf) < 0)
        return fail("SO_SNDBUF");
    if (connect(c->fd, (struct sockaddr *)&loop->address, loop->address_len) < 0)
        return fail("connect");
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c};
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, c->fd, &event) < 0)
        return fail("epoll_ctl");
    c->lowat = 1;
    c->fresh = true;
    c->close_after = false;
    return 0;
}

static void connection_shut(struct connection *c)
{
    close(c->fd);
    c->fd = -1;
}

/* The mark must never exceed what is still to come, or the last bytes lie unseen. */
static int set_lowat(struct loop *loop, struct connection *c, size_t left)
{
    if (!loop->options->rcvlowat)
        return 0;
    size_t want = left < loop->options->rcvlowat ? left : loop->options->rcvlowat;
    int value = want < 1 ? 1 : (int)want;
    if (value == c->lowat)
        return 0;
    if (setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value) < 0)
        return fail("SO_RCVLOWAT");
    c->lowat = value;
    return 0;
}

static int receive_some(struct loop *loop, struct connection *c);

static int send_some(struct loop *loop, struct connection *c)
{
    const struct request *r = &c->request;
    size_t total = r->head_len + r->body_len;
    while (c->sent < total) {
        ssize_t n;
        if (r->body_len == 0) {
            n = send(c->fd, r->head + c->sent, total - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        } else if (c->sent >= r->head_len) {
            size_t at = c->sent - r->head_len;
            n = send(c->fd, r->body + at, r->body_len - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        } else {
            struct iovec iov[2] = {
                {(void *)(r->head + c->sent), r->head_len - c->sent},
                {(void *)r->body, r->body_len},
            };
            struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
            n = sendmsg(c->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        if (n < 0) {
            if (errno == EAGAIN)
                return 0;
            if (errno != EPIPE && errno != ECONNRESET)
                return fail("send");
            /* The peer may have answered before it closed: the receive side says. */
            c->phase = HEAD;
            return receive_some(loop, c);
        }
        c->sent += (size_t)n;
    }
    c->phase = HEAD;
    return 0;
}

static int start(struct loop *loop, struct connection *c, const struct request *request)
{
    if (c->fd >= 0 && c->close_after)
        connection_shut(c);
    if (c->fd < 0 && connection_open(loop, c) < 0)
        return -1;
    c->request = *request;
    if (loop->work->slot)
        c->request.destination = loop->work->memory + (size_t)(c - loop->connections) * loop->work->slot;
    c->phase = SENDING;
    c->sent = c->fill = c->got = c->length = 0;
    return send_some(loop, c);
}

/* A server may close a connection that lay idle: that costs one resend, and is counted. */
static int restart(struct loop *loop, struct connection *c)
{
    if (c->fresh || c->fill)
        return complain("the server closed the connection before it answered (%zu bytes of the answer came)", c->fill);
    connection_shut(c);
    loop->tally->reconnects++;
    struct request again = c->request;
    return start(loop, c, &again);
}

/* Begins the next of the work's requests. */
static int begin(struct loop *loop, struct connection *c)
{
    c->index = loop->next++;
    if (loop->work->samples)
        loop->work->samples[c->index].start_ns = now_ns();
    return start(loop, c, &loop->work->requests[c->index]);
}

static void record(struct loop *loop, struct connection *c)
{
    struct sample *sample = &loop->work->samples[c->index];
    sample->end_ns = now_ns();
    sample->bytes += loop->work->follow ? 0 : c->length + c->request.body_len;
    sample->worker = (uint32_t)(c - loop->connections);
    if (loop->work->digest && c->request.body_len)
        sample->crc = crc32_of(0, c->request.body, c->request.body_len);
    else if (loop->work->digest && c->request.destination)
        sample->crc = crc32_of(0, c->request.destination, c->length);
}

static int next_request(struct loop *loop, struct connection *c)
{
    if (loop->work->follow) {
        struct request next;
        int rc = loop->work->follow(c->request.chain, c->request.destination, c->length, &next);
        if (rc < 0)
            return -1;
        if (rc == 1)
            return start(loop, c, &next);
    }
    if (loop->work->samples)
        record(loop, c);
    if (loop->next < loop->work->count)
        return begin(loop, c);
    c->phase = IDLE;
    loop->active--;
    return 0;
}

/* What a failure costs: all, or where there are samples, the request and its socket. */
static int give_up(struct loop *loop, struct connection *c)
{
    if (!loop->work->samples)
        return -1;
    do {
        struct sample *sample = &loop->work->samples[c->index];
        sample->end_ns = now_ns();
        sample->worker = (uint32_t)(c - loop->connections);
        sample->error = strdup(complaint());
        if (c->fd >= 0)
            connection_shut(c);
        c->phase = IDLE;
        if (loop->next == loop->work->count) {
            loop->active--;
            return 0;
        }
    } while (begin(loop, c) < 0);
    return 0;
}

static int finish(struct loop *loop, struct connection *c)
{
    loop->tally->bytes += c->length + c->request.body_len;
    loop->tally->requests++;
    c->fresh = false;
    if (set_lowat(loop, c, 1) < 0)
        return -1;
    return next_request(loop, c);
}

static int accept_head(struct loop *loop, struct connection *c)
{
    struct response response;
    size_t in_probe = c->fill < HEAD_PROBE ? c->fill : HEAD_PROBE;
    int rc = response_parse(c->head, in_probe, &response);
    if (rc == 0 && in_probe < HEAD_PROBE)
        return 0;
    if (rc <= 0)
        return complain("not a response with a content-length: %.*s", (int)in_probe, c->head);
    const struct request *r = &c->request;
    size_t surplus = c->fill - response.head_len;
    bool fits = r->expected == ANY_LENGTH ? response.content_length <= r->capacity
                                          : response.content_length == r->expected;
    if (response.status != r->status || !fits || surplus > response.content_length) {
        /* The text of a refusal says why; the bytes of an object say nothing. */
        size_t quoted = response.status >= 300 ? in_probe : response.head_len;
        return complain("wanted status %u and %zu bytes, got %u and %zu, to the request:\n%.*s%.*s", r->status,
                        r->expected, response.status, response.content_length, (int)r->head_len, r->head, (int)quoted,
                        c->head);
    }
    if (loop->work->samples && !loop->work->samples[c->index].first_ns)
        loop->work->samples[c->index].first_ns = now_ns();
    c->length = response.content_length;
    c->close_after = response.close;
    c->got = surplus;
    if (r->destination) {
        /* What was received past the probe lies where a head of the predicted
         * length would have put it; move it only if this head was another length. */
        if (c->fill > HEAD_PROBE && response.head_len != c->predicted)
            memmove(r->destination + (HEAD_PROBE - response.head_len),
                    r->destination + (HEAD_PROBE - c->predicted), c->fill - HEAD_PROBE);
        memcpy(r->destination, c->head + response.head_len, in_probe - response.head_len);
    }
    c->predicted = response.head_len;
    c->phase = BODY;
    return 0;
}

/* Bytes received, 0 when the socket is drained, -1 on an error, -2 at its end. */
static ssize_t receive_head(struct loop *loop, struct connection *c, bool *drained)
{
    const struct request *r = &c->request;
    struct iovec iov[2] = {{c->head + c->fill, 0}, {NULL, 0}};
    size_t asked = 0;
    if (c->fill < HEAD_PROBE)
        asked = iov[0].iov_len = HEAD_PROBE - c->fill;
    size_t ahead = HEAD_PROBE - c->predicted;
    if (c->predicted && r->expected != ANY_LENGTH && r->expected > ahead) {
        iov[1].iov_base = r->destination ? r->destination + ahead : loop->scratch;
        iov[1].iov_len = r->expected - ahead;
        if (!r->destination && iov[1].iov_len > loop->options->scratch)
            iov[1].iov_len = loop->options->scratch;
        asked += iov[1].iov_len;
    }
    struct msghdr message = {.msg_iov = iov, .msg_iovlen = iov[1].iov_len ? 2 : 1};
    ssize_t n = recvmsg(c->fd, &message, MSG_DONTWAIT);
    *drained = n >= 0 && (size_t)n < asked;
    return n;
}

static ssize_t receive_body(struct loop *loop, struct connection *c, bool *drained)
{
    size_t left = c->length - c->got;
    unsigned char *into = c->request.destination ? c->request.destination + c->got : loop->scratch;
    size_t asked = !c->request.destination && left > loop->options->scratch ? loop->options->scratch : left;
    ssize_t n = recv(c->fd, into, asked, MSG_DONTWAIT);
    *drained = n >= 0 && (size_t)n < asked;
    return n;
}

static int receive_some(struct loop *loop, struct connection *c)
{
    for (;;) {
        if (c->phase == IDLE)
            return 0;
        bool drained;
        bool in_body = c->phase == BODY;
        ssize_t n = in_body ? receive_body(loop, c, &drained) : receive_head(loop, c, &drained);
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n == 0 || (n < 0 && errno == ECONNRESET)) {
            if (!in_body)
                return restart(loop, c);
            return complain("the connection ended after %zu of %zu body bytes", c->got, c->length);
        }
        if (n < 0)
            return fail("recv");
        if (in_body) {
            c->got += (size_t)n;
        } else {
            c->fill += (size_t)n;
            if (accept_head(loop, c) < 0)
                return -1;
            if (c->phase != BODY) {
                if (drained)
                    return 0;
                continue;
            }
        }
        if (c->got == c->length) {
            if (finish(loop, c) < 0)
                return -1;
            /* The answer was read to its last byte: nothing can lie behind it. */
            return 0;
        }
        if (set_lowat(loop, c, c->length - c->got) < 0)
            return -1;
        if (drained)
            return 0;
    }
}

static int serve(struct loop *loop, struct connection *c, uint32_t events)
{
    if (c->phase == SENDING && (events & EPOLLOUT) && send_some(loop, c) < 0)
        return -1;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP))
        return receive_some(loop, c);
    return 0;
}

static int run(struct loop *loop, const struct work *work, struct tally *tally)
{
    enum { WAIT_MS = 200, BATCH = 64 };
    struct epoll_event events[BATCH];
    loop->work = work;
    loop->tally = tally;
    loop->next = 0;
    loop->active = 0;
    for (size_t i = 0; i < loop->options->connections && loop->next < work->count; i++) {
        loop->active++;
        if (begin(loop, &loop->connections[i]) < 0 && give_up(loop, &loop->connections[i]) < 0)
            return -1;
    }
    size_t quiet_ms = 0;
    while (loop->active) {
        int ready = epoll_wait(loop->epoll, events, BATCH, WAIT_MS);
        if (ready < 0 && errno != EINTR)
            return fail("epoll_wait");
        for (int i = 0; i < ready; i++) {
            struct connection *c = events[i].data.ptr;
            if (serve(loop, c, events[i].events) < 0 && give_up(loop, c) < 0)
                return -1;
        }
        quiet_ms = ready > 0 ? 0 : quiet_ms + WAIT_MS;
        if (ready > 0)
            continue;
        if (quiet_ms >= loop->options->timeout_s * 1000)
            return complain("nothing came for %zu s", loop->options->timeout_s);
        /* Bytes can lie under the mark when the window can't grow to it. */
        for (size_t i = 0; i < loop->options->connections; i++) {
            struct connection *c = &loop->connections[i];
            if (c->fd >= 0 && (c->phase == HEAD || c->phase == BODY) && receive_some(loop, c) < 0 &&
                give_up(loop, c) < 0)
                return -1;
        }
    }
    return 0;
}

int loop_run(struct loop *loop, const struct work *work, struct tally *tally)
{
    int rc = run(loop, work, tally);
    if (rc < 0)
        fprintf(stderr, "limit: %s\n", complaint());
    return rc;
}
