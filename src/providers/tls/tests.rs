use std::path::PathBuf;
use std::process::Command;

use super::*;
use crate::codes::Code;

/// A CA, and a client certificate with its key in every accepted form, made by the openssl command.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        let files = Self(tempfile::tempdir().expect("a directory"));
        files.openssl("req -x509 -newkey rsa:2048 -nodes -subj /CN=ca -keyout ca.key -out ca.pem -days 2");
        files.openssl("req -x509 -newkey rsa:2048 -nodes -subj /CN=me -keyout rsa8.key -out rsa.pem -days 2");
        files.openssl("rsa -in rsa8.key -traditional -out rsa1.key");
        files.openssl("pkcs8 -topk8 -v2 aes256 -in rsa8.key -passout pass:pw-1 -out locked.key");
        files.openssl("ecparam -name prime256v1 -genkey -noout -out sec1.key");
        files.openssl("req -x509 -new -key sec1.key -subj /CN=me -out ec.pem -days 2");
        std::fs::write(files.0.path().join("empty.pem"), "no certificate here").expect("a file");
        files
    }

    fn openssl(&self, arguments: &str) {
        let run = Command::new("openssl").args(arguments.split(' ')).current_dir(self.0.path()).output();
        let run = run.expect("openssl is installed");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }

    fn build(
        &self,
        ca: Option<&str>,
        client: Option<(&str, &str)>,
        password: Option<&str>,
    ) -> Result<(), ProviderFailure> {
        let tls = Tls {
            ca_location: ca.map(PathBuf::from),
            certificate_location: client.map(|(certificate, _)| certificate.into()),
            key_location: client.map(|(_, key)| key.into()),
            key_password: password.map(Secret::new),
        };
        Material::load(&tls, self.0.path())?.client_config().map(|_| ())
    }
}

#[test]
fn every_accepted_form_of_a_key_is_read_and_nothing_else() {
    let files = Files::new();
    for (client, password) in [
        (("rsa.pem", "rsa8.key"), None),
        (("rsa.pem", "rsa1.key"), None),
        (("ec.pem", "sec1.key"), None),
        (("rsa.pem", "locked.key"), Some("pw-1")),
        (("rsa.pem", "rsa8.key"), Some("unused")),
    ] {
        assert_eq!(files.build(Some("ca.pem"), Some(client), password), Ok(()), "{client:?}");
    }
    assert_eq!(files.build(None, None, None), Ok(()));

    for (ca, client, password, code) in [
        (Some("none.pem"), None, None, Code::E405SslError),
        (Some("empty.pem"), None, None, Code::E405SslError),
        (None, Some(("none.pem", "rsa8.key")), None, Code::E405SslError),
        (None, Some(("empty.pem", "rsa8.key")), None, Code::E405SslError),
        (None, Some(("rsa.pem", "empty.pem")), None, Code::E405SslError),
        (None, Some(("rsa.pem", "locked.key")), Some("wrong"), Code::E405SslError),
        (None, Some(("rsa.pem", "locked.key")), None, Code::E208MissingConfig),
        (None, Some(("ec.pem", "rsa8.key")), None, Code::E405SslError),
    ] {
        let failure = files.build(ca, client, password).expect_err("unusable");
        assert_eq!(failure.code(), code, "{ca:?} {client:?}");
    }
}

/// SEC-004
#[test]
fn half_a_client_certificate_is_refused_by_name_and_no_path_is_shown() {
    let half = Tls { certificate_location: Some("sentinel.pem".into()), ..Tls::default() };
    let failure = Material::load(&half, Path::new("/")).expect_err("half");
    assert_eq!(failure, ProviderFailure::Config { field: "ssl_key_location" });
    let half = Tls { key_location: Some("sentinel.pem".into()), ..Tls::default() };
    let failure = Material::load(&half, Path::new("/")).expect_err("half");
    assert_eq!(failure, ProviderFailure::Config { field: "ssl_certificate_location" });
    let missing = Tls { ca_location: Some("sentinel.pem".into()), ..Tls::default() };
    let failure = Material::load(&missing, Path::new("/")).expect_err("missing");
    assert!(!format!("{failure} {failure:?}").contains("sentinel"));
}
