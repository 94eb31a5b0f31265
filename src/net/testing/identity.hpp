// Certificates that tests create themselves.
#pragma once

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <functional>
#include <string>
#include <utility>

namespace net::testing {

struct Identity {
  std::string cert, key;
};

inline std::string to_pem(const std::function<void(BIO*)>& write) {
  BIO* bio = BIO_new(BIO_s_mem());
  write(bio);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string out(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return out;
}

/// Makes a self-signed certificate, which is its own authority. Certificates in one CA file need different common names,
/// because OpenSSL finds authorities by name.
inline Identity make_identity(const std::string& alt_names, const std::string& common_name = "test") {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* cert = X509_new();
  X509_set_version(cert, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
  X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
  X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
  X509_set_pubkey(cert, key);
  X509_NAME* name = X509_get_subject_name(cert);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  X509_set_issuer_name(cert, name);
  for (const auto& [nid, value] :
       {std::pair<int, std::string>{NID_subject_alt_name, alt_names}, {NID_basic_constraints, "CA:TRUE"}}) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
    X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
  }
  X509_sign(cert, key, EVP_sha256());
  Identity out{to_pem([&](BIO* bio) { PEM_write_bio_X509(bio, cert); }),
               to_pem([&](BIO* bio) { PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); })};
  X509_free(cert);
  EVP_PKEY_free(key);
  return out;
}

}  // namespace net::testing
