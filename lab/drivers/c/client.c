/* The client: aws-c-s3 with an explicit number of connections, each item one meta request. */
#include "driver.h"

#include <aws/auth/credentials.h>
#include <aws/checksums/crc.h>
#include <aws/common/string.h>
#include <aws/common/uri.h>
#include <aws/http/request_response.h>
#include <aws/io/channel_bootstrap.h>
#include <aws/io/event_loop.h>
#include <aws/io/host_resolver.h>
#include <aws/io/stream.h>
#include <aws/io/tls_channel_handler.h>
#include <aws/s3/s3.h>
#include <aws/s3/s3_client.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_PART (8u << 20)

struct client {
    const struct plan *plan;
    const uint8_t *body;
    void (*done)(struct transfer *);
    struct aws_allocator *allocator;
    struct aws_s3_client *s3;
    struct aws_uri endpoint;
    struct aws_signing_config_aws signing;
};

/* A transfer's own part of what the client's callbacks are given. */
struct under_way {
    struct client *client;
    struct transfer *transfer;
    struct aws_input_stream *body;
};

uint64_t client_part_size(const struct plan *plan) { return plan->part_size ? plan->part_size : DEFAULT_PART; }

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, aws_error_debug_str(aws_last_error()));
    exit(1);
}

static void trust(struct aws_allocator *allocator, const char *file, struct aws_tls_connection_options *tls) {
    struct aws_tls_ctx_options options;
    aws_tls_ctx_options_init_default_client(&options, allocator);
    if (file && aws_tls_ctx_options_override_default_trust_store_from_path(&options, NULL, file))
        fail(file);
    struct aws_tls_ctx *context = aws_tls_client_ctx_new(allocator, &options);
    if (!context)
        fail("TLS");
    aws_tls_connection_options_init_from_ctx(tls, context);
}

struct client *client_open(const struct plan *plan, const uint8_t *body, void (*done)(struct transfer *)) {
    struct aws_allocator *allocator = aws_default_allocator();
    struct client *client = calloc(1, sizeof *client);
    client->plan = plan;
    client->body = body;
    client->done = done;
    client->allocator = allocator;
    struct aws_byte_cursor endpoint = aws_byte_cursor_from_c_str(plan->endpoint);
    if (aws_uri_init_parse(&client->endpoint, allocator, &endpoint))
        fail(plan->endpoint);
    struct aws_event_loop_group *loops = aws_event_loop_group_new_default(allocator, 0, NULL);
    struct aws_host_resolver_default_options resolving = {.el_group = loops, .max_entries = 8};
    struct aws_client_bootstrap_options starting = {
        .event_loop_group = loops, .host_resolver = aws_host_resolver_new_default(allocator, &resolving)};
    const char *key = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY");
    struct aws_credentials_provider_static_options credentials = {
        .access_key_id = aws_byte_cursor_from_c_str(key ? key : ""),
        .secret_access_key = aws_byte_cursor_from_c_str(secret ? secret : "")};
    aws_s3_init_default_signing_config(&client->signing, aws_byte_cursor_from_c_str(plan->region),
                                       aws_credentials_provider_new_static(allocator, &credentials));
    client->signing.flags.use_double_uri_encode = false;
    bool secure = aws_byte_cursor_eq_c_str_ignore_case(aws_uri_scheme(&client->endpoint), "https");
    struct aws_tls_connection_options tls;
    if (secure)
        trust(allocator, plan->ca_file, &tls);
    struct aws_s3_client_config config = {
        /* It takes a connection for each 0.4 Gbit/s that it aims at, and what it is told only makes them fewer: it has
         * to aim high enough first. */
        .throughput_target_gbps = plan->concurrency > 20 ? 0.5 * plan->concurrency : 10.0,
        .max_active_connections_override = plan->concurrency,
        .region = aws_byte_cursor_from_c_str(plan->region),
        .client_bootstrap = aws_client_bootstrap_new(allocator, &starting),
        .tls_mode = secure ? AWS_MR_TLS_ENABLED : AWS_MR_TLS_DISABLED,
        .tls_connection_options = secure ? &tls : NULL,
        .signing_config = &client->signing,
        .part_size = client_part_size(plan),
        .multipart_upload_threshold = client_part_size(plan),
    };
    client->s3 = aws_s3_client_new(allocator, &config);
    if (!client->s3)
        fail("the client");
    return client;
}

static int on_body(struct aws_s3_meta_request *request, const struct aws_byte_cursor *bytes, uint64_t at, void *data) {
    struct under_way *way = data;
    struct transfer *transfer = way->transfer;
    const struct item *item = &way->client->plan->work[transfer->n];
    (void)request;
    if (!transfer->first)
        transfer->first = now();
    if (transfer->memory) {
        if (at < item->first || at + bytes->len > item->end)
            return aws_raise_error(AWS_ERROR_SHORT_BUFFER);
        memcpy(transfer->memory + (at - item->first), bytes->ptr, bytes->len);
    } else if (transfer->verify) {
        for (size_t from = 0; from < bytes->len; from += 1 << 30) {
            size_t count = bytes->len - from < 1 << 30 ? bytes->len - from : 1 << 30;
            transfer->crc = aws_checksums_crc32(bytes->ptr + from, (int)count, transfer->crc);
        }
    }
    transfer->received += bytes->len;
    return AWS_OP_SUCCESS;
}

static void on_finish(struct aws_s3_meta_request *request, const struct aws_s3_meta_request_result *result,
                      void *data) {
    struct under_way *way = data;
    struct transfer *transfer = way->transfer;
    struct client *client = way->client;
    transfer->end = now();
    if (result->error_code) {
        struct aws_byte_buf *said = result->error_response_body;
        snprintf(transfer->error, sizeof transfer->error, "%s, status %d: %.*s", aws_error_name(result->error_code),
                 result->response_status, said ? (int)said->len : 0, said ? (const char *)said->buffer : "");
    }
    if (client->plan->operation == PUT) {
        const struct item *item = &client->plan->work[transfer->n];
        transfer->received = result->error_code ? 0 : item->end;
    } else if (client->plan->sink == INTO_FILE && !result->error_code) {
        char path[PATH_MAX];
        struct stat written;
        item_path(client->plan, transfer->n, path);
        transfer->received = stat(path, &written) ? 0 : (uint64_t)written.st_size;
    }
    aws_input_stream_release(way->body);
    aws_s3_meta_request_release(request);
    free(way);
    client->done(transfer);
}

static void header(struct aws_http_message *message, const char *name, struct aws_byte_cursor value) {
    struct aws_http_header made = {.name = aws_byte_cursor_from_c_str(name), .value = value};
    aws_http_message_add_header(message, made);
}

static struct aws_http_message *message(struct client *client, const struct item *item, bool put) {
    struct aws_http_message *made = aws_http_message_new_request(client->allocator);
    struct aws_byte_buf path;
    struct aws_byte_cursor key = aws_byte_cursor_from_c_str(item->key);
    char text[64];
    aws_byte_buf_init(&path, client->allocator, 64 + strlen(client->plan->bucket) + 3 * key.len);
    aws_byte_buf_write_from_whole_cursor(&path, aws_byte_cursor_from_c_str("/"));
    aws_byte_buf_write_from_whole_cursor(&path, aws_byte_cursor_from_c_str(client->plan->bucket));
    aws_byte_buf_write_from_whole_cursor(&path, aws_byte_cursor_from_c_str("/"));
    aws_byte_buf_append_encoding_uri_path(&path, &key);
    aws_http_message_set_request_method(made, aws_byte_cursor_from_c_str(put ? "PUT" : "GET"));
    aws_http_message_set_request_path(made, aws_byte_cursor_from_buf(&path));
    aws_byte_buf_clean_up(&path);
    header(made, "Host", *aws_uri_authority(&client->endpoint));
    if (item->ranged) {
        snprintf(text, sizeof text, "bytes=%" PRIu64 "-%" PRIu64, item->first, item->end - 1);
        header(made, "Range", aws_byte_cursor_from_c_str(text));
    }
    if (put) {
        snprintf(text, sizeof text, "%" PRIu64, item->end);
        header(made, "Content-Length", aws_byte_cursor_from_c_str(text));
    }
    return made;
}

void client_start(struct client *client, struct transfer *transfer) {
    const struct plan *plan = client->plan;
    const struct item *item = &plan->work[transfer->n];
    bool put = plan->operation == PUT;
    struct under_way *way = calloc(1, sizeof *way);
    char path[PATH_MAX];
    *way = (struct under_way){.client = client, .transfer = transfer};
    item_path(plan, transfer->n, path);
    struct aws_s3_checksum_config checksums = {
        .location = put && plan->checksums ? AWS_SCL_TRAILER : AWS_SCL_NONE,
        .checksum_algorithm = put && plan->checksums ? AWS_SCA_CRC32 : AWS_SCA_NONE,
        .validate_response_checksum = !put && plan->checksums,
    };
    struct aws_s3_meta_request_options options = {
        .type = put ? AWS_S3_META_REQUEST_TYPE_PUT_OBJECT : AWS_S3_META_REQUEST_TYPE_GET_OBJECT,
        .message = message(client, item, put),
        .checksum_config = &checksums,
        .endpoint = &client->endpoint,
        .user_data = way,
        .finish_callback = on_finish,
    };
    if (put && plan->from_file) {
        options.send_filepath = aws_byte_cursor_from_c_str(path);
    } else if (put) {
        struct aws_byte_cursor body = aws_byte_cursor_from_array(client->body, item->end);
        way->body = aws_input_stream_new_from_cursor(client->allocator, &body);
        aws_http_message_set_body_stream(options.message, way->body);
    } else if (plan->sink == INTO_FILE) {
        options.recv_filepath = aws_byte_cursor_from_c_str(path);
    } else {
        options.body_callback = on_body;
        /* Parts are taken as they come where that is the same to the sink. */
        if (transfer->memory || (plan->sink == DISCARD && !transfer->verify))
            options.out_of_order_delivery = AWS_TRIBOOL_TRUE;
    }
    transfer->start = now();
    struct aws_s3_meta_request *request = aws_s3_client_make_meta_request(client->s3, &options);
    aws_http_message_release(options.message);
    if (request)
        return;
    transfer->end = now();
    snprintf(transfer->error, sizeof transfer->error, "%s", aws_error_debug_str(aws_last_error()));
    aws_input_stream_release(way->body);
    free(way);
    client->done(transfer);
}
