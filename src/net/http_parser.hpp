// Beast's HTTP/1.1 parser as a state machine without sockets: takes bytes, and calls handlers. Private to this folder.
#pragma once

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <functional>
#include <string>

#include "net/http.hpp"

namespace net {

/// Parses one message. Reports the head once, then each piece of the body as it arrives.
template <bool kIsRequest>
class MessageParser final : public boost::beast::http::basic_parser<kIsRequest> {
 public:
  using Base = boost::beast::http::basic_parser<kIsRequest>;
  using Error = boost::beast::error_code;
  using StringView = boost::beast::string_view;

  MessageParser(std::function<void()> on_head, std::function<void(std::string_view)> on_body)
      : on_head_(std::move(on_head)), on_body_(std::move(on_body)) {
    this->eager(true);
    this->header_limit(64U << 10);
    this->body_limit(boost::none);  // The owner of the parser limits the size.
  }

  /// Consumes what it can from the front of `buffer`. Returns false if the message is malformed.
  bool feed(std::string& buffer) {
    std::size_t at = 0;
    while (at < buffer.size() && !this->is_done()) {
      Error error;
      const std::size_t n = this->put(boost::asio::const_buffer(buffer.data() + at, buffer.size() - at), error);
      at += n;
      if (error == boost::beast::http::error::need_more || (!error && n == 0)) break;
      if (error) return false;
    }
    buffer.erase(0, at);
    return true;
  }

  /// Handles the end of the connection. Returns true if the message is then complete.
  bool feed_end() {
    Error error;
    if (this->got_some() && !this->is_done()) this->put_eof(error);
    return this->is_done() && !error;
  }

  int status = 0;      ///< The status of a response.
  std::string method;  ///< The method of a request.
  std::string target;  ///< The target of a request.
  Headers headers;

 private:
  void on_request_impl(boost::beast::http::verb, StringView method_text, StringView target_text, int, Error& error) override {
    method = std::string(method_text);
    target = std::string(target_text);
    error = {};
  }
  void on_response_impl(int code, StringView, int, Error& error) override {
    status = code;
    error = {};
  }
  void on_field_impl(boost::beast::http::field, StringView name, StringView value, Error& error) override {
    error = {};
    if (head_done_) return;  // Ignores trailers.
    std::string key(name);
    std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string& slot = headers[key];
    if (!slot.empty()) slot += ", ";
    slot += std::string_view(value.data(), value.size());
  }
  void on_header_impl(Error& error) override {
    error = {};
    head_done_ = true;
    on_head_();
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Error& error) override { error = {}; }
  std::size_t on_body_impl(StringView body, Error& error) override {
    error = {};
    on_body_({body.data(), body.size()});
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, StringView, Error& error) override { error = {}; }
  std::size_t on_chunk_body_impl(std::uint64_t, StringView body, Error& error) override {
    error = {};
    on_body_({body.data(), body.size()});
    return body.size();
  }
  void on_finish_impl(Error& error) override { error = {}; }

  std::function<void()> on_head_;
  std::function<void(std::string_view)> on_body_;
  bool head_done_ = false;
};

using ResponseParser = MessageParser<false>;
using RequestParser = MessageParser<true>;

}  // namespace net
