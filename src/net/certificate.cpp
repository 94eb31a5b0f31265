#include "net/certificate.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <functional>
#include <memory>
#include <stdexcept>

#include "core/hash.hpp"

namespace net {
namespace {

template <auto Free>
struct Freed {
  template <class Thing>
  void operator()(Thing* thing) const {
    Free(thing);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Cert = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;
void free_all(STACK_OF(X509) * certificates) {
  sk_X509_pop_free(certificates, X509_free);
}
using Stack = std::unique_ptr<STACK_OF(X509), Freed<free_all>>;

/// Throws on failure: if OpenSSL cannot make certificates, TLS cannot work, and no caller could handle the error.
void must(bool done) {
  if (!done) throw std::runtime_error("OpenSSL cannot make a certificate");
}

Bio reader(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string written(const std::function<int(BIO*)>& write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  must(bio && write(bio.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* cert) {
  return written([cert](BIO* bio) { return PEM_write_bio_X509(bio, cert); });
}

/// Returns the next certificate that can be read; null if there is none.
Cert next_certificate(BIO* bio) {
  for (;;) {
    Cert out(PEM_read_bio_X509(
        bio, nullptr, [](char*, int, int, void*) { return 0; }, nullptr));
    const bool none_left = !out && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    if (out || none_left) return out;
  }
}

std::vector<Cert> read_certificates(std::string_view pem) {
  std::vector<Cert> out;
  const Bio bio = reader(pem);
  while (Cert cert = next_certificate(bio.get())) out.push_back(std::move(cert));
  return out;
}

/// Returns the private key; null if it cannot be read.
Key read_key(std::string_view pem) {
  Key out(PEM_read_bio_PrivateKey(
      reader(pem).get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr));
  ERR_clear_error();
  return out;
}

std::string pem_of(EVP_PKEY* key) {
  return written([key](BIO* bio) { return PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
}

std::time_t seconds(core::WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.since_epoch).count();
}

void add_extension(X509* cert, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  must(extension != nullptr);
  const int added = X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
  must(added == 1);
}

/// Returns a certificate with a random serial number. It has no names, no extensions and no signature yet.
Cert blank(EVP_PKEY* key, core::WallTime not_before, core::WallTime not_after) {
  Cert out(X509_new());
  std::array<unsigned char, 16> serial{};
  must(out && RAND_bytes(serial.data(), static_cast<int>(serial.size())) == 1);
  serial[0] &= 0x7fU;  // The number must be positive.
  BIGNUM* number = BN_bin2bn(serial.data(), static_cast<int>(serial.size()), nullptr);
  const bool set = BN_to_ASN1_INTEGER(number, X509_get_serialNumber(out.get())) != nullptr;
  BN_free(number);
  must(set && X509_set_version(out.get(), X509_VERSION_3) == 1 && X509_set_pubkey(out.get(), key) == 1 &&
       ASN1_TIME_set(X509_getm_notBefore(out.get()), seconds(not_before)) != nullptr &&
       ASN1_TIME_set(X509_getm_notAfter(out.get()), seconds(not_after)) != nullptr);
  return out;
}

void set_name(X509_NAME* name, const std::string& common_name) {
  must(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(common_name.data()),
                                  static_cast<int>(common_name.size()), -1, 0) == 1);
}

/// Returns a new name for an authority. Each authority has its own name, because clients find authorities by name.
std::string name_of_authority(std::string_view common_name) {
  std::string bytes(6, '\0');
  must(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) == 1);
  return std::string(common_name) + " authority " + core::hex(bytes);
}

core::Result<void> invalid(std::string message) {
  return core::fail(core::ErrorCode::kInvalid, std::move(message));
}

core::Result<void> check_key(X509* cert, std::string_view key) {
  const Key own = read_key(key);
  const bool matches = own && X509_check_private_key(cert, own.get()) == 1;
  ERR_clear_error();
  if (!matches) return invalid("the private key is not the certificate's");
  return {};
}

SelfSigned self_signed(std::string_view common_name, EVP_PKEY* key) {
  const core::WallTime start{}, end = core::parse_rfc3339("9999-12-31T23:59:59Z").value();  // RFC 5280: it does not expire.
  const Cert cert = blank(key, start, end);
  set_name(X509_get_subject_name(cert.get()), std::string(common_name));
  must(X509_set_issuer_name(cert.get(), X509_get_subject_name(cert.get())) == 1);
  add_extension(cert.get(), cert.get(), NID_basic_constraints, "critical,CA:FALSE");
  add_extension(cert.get(), cert.get(), NID_key_usage, "critical,digitalSignature");
  add_extension(cert.get(), cert.get(), NID_ext_key_usage, "serverAuth,clientAuth");
  must(X509_sign(cert.get(), key, EVP_sha256()) > 0);
  return {pem_of(cert.get()), pem_of(key)};
}

}  // namespace

ServerIdentity make_server_identity(std::string_view common_name, const std::vector<std::string>& dns_names,
                                    core::WallTime not_before, core::WallTime not_after) {
  const Key authority_key(EVP_EC_gen("P-256")), key(EVP_EC_gen("P-256"));
  must(authority_key && key);

  const Cert authority = blank(authority_key.get(), not_before, not_after);
  set_name(X509_get_subject_name(authority.get()), name_of_authority(common_name));
  must(X509_set_issuer_name(authority.get(), X509_get_subject_name(authority.get())) == 1);
  add_extension(authority.get(), authority.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(authority.get(), authority.get(), NID_key_usage, "critical,keyCertSign");
  add_extension(authority.get(), authority.get(), NID_subject_key_identifier, "hash");
  must(X509_sign(authority.get(), authority_key.get(), EVP_sha256()) > 0);

  std::string alternatives;
  for (const std::string& name : dns_names) alternatives += (alternatives.empty() ? "DNS:" : ",DNS:") + name;
  const Cert cert = blank(key.get(), not_before, not_after);
  set_name(X509_get_subject_name(cert.get()), std::string(common_name));
  must(X509_set_issuer_name(cert.get(), X509_get_subject_name(authority.get())) == 1);
  add_extension(cert.get(), authority.get(), NID_basic_constraints, "critical,CA:FALSE");
  add_extension(cert.get(), authority.get(), NID_key_usage, "critical,digitalSignature");
  add_extension(cert.get(), authority.get(), NID_ext_key_usage, "serverAuth");
  add_extension(cert.get(), authority.get(), NID_authority_key_identifier, "keyid:always");
  add_extension(cert.get(), authority.get(), NID_subject_alt_name, alternatives);
  must(X509_sign(cert.get(), authority_key.get(), EVP_sha256()) > 0);

  return {pem_of(authority.get()), pem_of(cert.get()), pem_of(key.get())};
}

SelfSigned make_self_signed(std::string_view common_name) {
  const Key key(EVP_EC_gen("P-256"));
  must(key != nullptr);
  return self_signed(common_name, key.get());
}

core::Result<SelfSigned> make_self_signed(std::string_view common_name, std::string_view key_pem) {
  const Key key = read_key(key_pem);
  if (!key || EVP_PKEY_is_a(key.get(), "EC") != 1)
    return core::fail(core::ErrorCode::kInvalid, "the private key cannot be read, or is on no elliptic curve");
  return self_signed(common_name, key.get());
}

std::string fingerprint_of(const X509& cert) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(&cert), &der);
  must(size > 0);
  std::string out = core::sha256_hex({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
  OPENSSL_free(der);
  return out;
}

core::Result<std::string> fingerprint_of(std::string_view cert_pem) {
  const Cert cert = next_certificate(reader(cert_pem).get());
  if (!cert) return core::fail(core::ErrorCode::kInvalid, "there is no certificate");
  return fingerprint_of(*cert);
}

core::Result<void> check_pair(std::string_view cert, std::string_view key) {
  const Cert first = next_certificate(reader(cert).get());
  if (!first) return invalid("there is no certificate");
  return check_key(first.get(), key);
}

std::vector<std::string> split_certificates(std::string_view pem) {
  std::vector<std::string> out;
  for (const Cert& cert : read_certificates(pem)) out.push_back(pem_of(cert.get()));
  return out;
}

core::Result<core::WallTime> expiry_of(std::string_view pem) {
  const Cert cert = next_certificate(reader(pem).get());
  std::tm time{};
  if (!cert || ASN1_TIME_to_tm(X509_get0_notAfter(cert.get()), &time) != 1)
    return core::fail(core::ErrorCode::kInvalid, "there is no certificate");
  return core::WallTime{std::chrono::seconds(timegm(&time))};
}

core::Result<void> check_server(std::string_view cert, std::string_view key, std::string_view authorities,
                                const std::string& dns_name, core::WallTime now) {
  const std::vector<Cert> chain = read_certificates(cert);
  if (chain.empty()) return invalid("there is no certificate");
  if (auto fits = check_key(chain.front().get(), key); !fits) return fits;

  const Store store(X509_STORE_new());
  const StoreContext context(X509_STORE_CTX_new());
  const Stack others(sk_X509_new_null());
  must(store && context && others);
  for (const Cert& authority : read_certificates(authorities)) must(X509_STORE_add_cert(store.get(), authority.get()) == 1);
  for (std::size_t i = 1; i < chain.size(); ++i) {
    must(X509_up_ref(chain[i].get()) == 1 && sk_X509_push(others.get(), chain[i].get()) > 0);
  }
  must(X509_STORE_CTX_init(context.get(), store.get(), chain.front().get(), others.get()) == 1);
  X509_VERIFY_PARAM* wanted = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(wanted, seconds(now));
  must(X509_VERIFY_PARAM_set_purpose(wanted, X509_PURPOSE_SSL_SERVER) == 1 &&
       X509_VERIFY_PARAM_set1_host(wanted, dns_name.data(), dns_name.size()) == 1);
  const bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (good) return {};
  return invalid(std::string("certificate refused: ") + X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())));
}

}  // namespace net
