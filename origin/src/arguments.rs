//! The command line, and what it means to the library.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread::available_parallelism;

use clap::{Parser, ValueEnum};
use wirespeed_origin::{
    Builder, EtagKind, Fault, FirstByte, Model, Nic, Origin, PrefixLimits, Rate, Schedule, Series, Tls, TlsFault,
    TlsVersions,
};

/// An embedded S3 server for tests, demonstrations and benchmarks
///
/// Objects are kept in memory unless --dir is given. When it accepts connections it prints one line,
/// "wirespeed-origin listening on http://ADDRESS:PORT" (https:// with --tls). GET /-/stats answers with counts of requests, bytes and
/// connections as JSON, POST /-/reset sets them back, POST /-/refill fills up the model's burst credit, POST /-/faults takes a schedule of faults. SIGTERM and SIGINT stop it.
#[derive(Parser)]
#[command(version, max_term_width = 110)]
pub(crate) struct Arguments {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,

    /// Write the port to this file once connections are accepted
    #[arg(long, value_name = "PATH")]
    pub(crate) port_file: Option<PathBuf>,

    /// Make this bucket at the start; can be given again
    #[arg(long, value_name = "NAME")]
    bucket: Vec<String>,

    /// Make a bucket that hashes and counts uploads and drops their bytes, for measuring uploads; can be given again
    #[arg(long, value_name = "NAME")]
    discard: Vec<String>,

    /// Make a bucket of computed objects, or add to one; can be given again
    ///
    /// NAME=objects:COUNT,size:SIZE[,prefix:TEXT][,digits:N][,seed:N] is COUNT objects named TEXT followed by a
    /// number from 0 in N digits (8 unless told); NAME=object:KEY,size:SIZE[,seed:N] is one. SIZE is in bytes or has
    /// a unit: KiB, MiB, GiB, TiB. For example data=objects:20000,size:64KiB,prefix:data/
    #[arg(long, value_name = "NAME=SPEC", value_parser = synthetic)]
    synthetic: Vec<(String, Series)>,

    /// Keep objects in files under this directory, and serve those already there
    #[arg(long, value_name = "PATH")]
    dir: Option<PathBuf>,

    /// Access key that requests are signed with
    #[arg(long, env = "WIRESPEED_ORIGIN_ACCESS_KEY", default_value = "wirespeed", value_name = "KEY")]
    access_key: String,

    /// Secret key that requests are signed with
    #[arg(
        long,
        env = "WIRESPEED_ORIGIN_SECRET_KEY",
        default_value = "wirespeed-secret",
        value_name = "KEY",
        hide_env_values = true
    )]
    secret_key: String,

    /// Session token that must come with every signed request
    #[arg(long, env = "WIRESPEED_ORIGIN_SESSION_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    session_token: Option<String>,

    /// Account that owns every bucket: a request that expects another owner is refused
    #[arg(long, default_value = "123456789012", value_name = "ID")]
    account: String,

    /// Compute the CRC-64/NVME of every upload that brings no checksum, as S3 does
    #[arg(long)]
    default_checksum: bool,

    /// Show an object's checksum with a range that covers the whole of it, as S3 does not
    #[arg(long)]
    checksum_on_covering_range: bool,

    /// Let unsigned requests in; signatures that are given are still checked
    #[arg(long)]
    anonymous: bool,

    /// Region that the server says it is in; signatures for any region are taken
    #[arg(long, default_value = "us-east-1", value_name = "NAME")]
    region: String,

    /// Take bucket.NAME in the Host header for a bucket, besides path style
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,

    /// What ETags are made of
    #[arg(long, value_enum, default_value = "md5", value_name = "KIND")]
    etag: Etag,

    /// Least size of any part of a multipart upload but the last
    #[arg(long, default_value = "5MiB", value_name = "SIZE", value_parser = size)]
    min_part_size: u64,

    /// Threads that serve; 1 is the cheapest a request. Default: one a core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Misbehave, for tests; can be given again
    ///
    /// action=ACTION[,verb=VERB][,bucket=NAME][,key=KEY][,nth=N][,times=N][,probability=P]. What actions there are is
    /// in docs/origin.md, and in the error that a wrong one gets. For example verb=get,key=x,nth=2,action=close-after:1000
    #[arg(long, value_name = "FAULT")]
    fault: Vec<Fault>,

    /// Misbehave as this file says, in TOML or JSON: a seed and a list of faults
    #[arg(long, value_name = "PATH")]
    faults: Option<PathBuf>,

    /// Seed of the faults that are drawn, in place of the file's
    #[arg(long, value_name = "N")]
    fault_seed: Option<u64>,

    /// Have a clock that is wrong by so many seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, default_value_t = 0)]
    clock_skew: i64,

    /// Be like the store that this file describes, in TOML: latency, rates, limits (see docs/origin.md)
    #[arg(long, value_name = "PATH")]
    model: Option<PathBuf>,

    /// Time to the first byte of every answer: 30ms, or 27ms..75ms for median..95th percentile of a log-normal
    #[arg(long, value_name = "TIME")]
    first_byte: Option<FirstByte>,

    /// The most that one connection sends, such as 90MB/s
    #[arg(long, value_name = "RATE")]
    connection_down: Option<Rate>,

    /// The most that one connection takes, such as 70MB/s
    #[arg(long, value_name = "RATE")]
    connection_up: Option<Rate>,

    /// The most that all connections together carry each way, such as 2GB/s; with bursts: BASELINE,BURST,CREDIT
    #[arg(long, value_name = "RATE[,RATE,SIZE]", value_parser = nic)]
    nic: Option<Nic>,

    /// Requests a second that each prefix takes before it answers 503 SlowDown, such as 5500,3500
    #[arg(long, value_name = "READS,WRITES", value_parser = prefix_limits)]
    prefix_requests: Option<PrefixLimits>,

    /// Seed of what the model draws
    #[arg(long, value_name = "N")]
    model_seed: Option<u64>,

    /// Serve HTTPS, with a certificate made at the start for localhost, 127.0.0.1, ::1, the domain and what is under it
    #[arg(long)]
    tls: bool,

    /// Write what clients are to trust to this file, in PEM: the authority that signed the certificate
    #[arg(long, value_name = "PATH", requires = "tls")]
    pub(crate) tls_ca_file: Option<PathBuf>,

    /// Serve with the certificate chain in this file, in PEM, leaf first
    #[arg(long, value_name = "PATH", requires = "tls", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Private key of --tls-cert, in PEM
    #[arg(long, value_name = "PATH", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Make a bad certificate: wrong-name, expired or self-signed
    #[arg(long, value_name = "FAULT", requires = "tls", conflicts_with = "tls_cert")]
    tls_fault: Option<TlsFault>,

    /// Versions of TLS to speak: 1.2, 1.3 or 1.2,1.3
    #[arg(long, value_name = "VERSIONS", requires = "tls")]
    tls_versions: Option<TlsVersions>,

    /// Let clients beyond loopback use /-/stats and /-/reset
    #[arg(long)]
    control_from_anywhere: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Etag {
    /// MD5, as S3 has it: 1.5 core-seconds a GiB uploaded
    Md5,
    /// CRC-64/NVME and the length: next to nothing
    Fast,
}

impl Arguments {
    /// Threads to serve with.
    pub(crate) fn threads(&self) -> usize {
        self.threads.map_or_else(|| available_parallelism().map_or(1, usize::from), usize::from)
    }

    /// The server that was asked for.
    ///
    /// # Errors
    /// A file that can't be read.
    pub(crate) fn builder(self) -> io::Result<Builder> {
        let tls = self.tls()?;
        let model = self.model()?;
        let faults = self.faults.as_deref().map_or_else(|| Ok(Schedule::default()), parsed)?;
        let faults = self.fault_seed.into_iter().fold(faults, Schedule::seed);
        let mut builder = Origin::builder()
            .listen(self.listen)
            .keys(self.access_key.clone(), self.secret_key.clone())
            .account(self.account)
            .default_checksum(self.default_checksum)
            .checksum_on_covering_range(self.checksum_on_covering_range)
            .anonymous(self.anonymous)
            .region(self.region)
            .etag(match self.etag {
                Etag::Md5 => EtagKind::Md5,
                Etag::Fast => EtagKind::Fast,
            })
            .least_part(self.min_part_size)
            .faults(faults)
            .clock_skew(self.clock_skew)
            .model(model)
            .control_from_anywhere(self.control_from_anywhere);
        if let Some(token) = self.session_token {
            // In place of the same keys without one.
            builder = builder.temporary_keys(self.access_key, self.secret_key, token);
        }
        if let Some(name) = self.domain {
            builder = builder.domain(name);
        }
        if let Some(path) = self.dir {
            builder = builder.directory(path);
        }
        builder = self.fault.into_iter().fold(builder, Builder::fault);
        builder = self.bucket.into_iter().fold(builder, Builder::bucket);
        builder = self.discard.into_iter().fold(builder, Builder::discarding_bucket);
        builder = tls.into_iter().fold(builder, Builder::tls);
        Ok(self.synthetic.into_iter().fold(builder, |builder, (name, series)| builder.synthetic(name, series)))
    }

    /// What the file says, and what flags say in its place.
    fn model(&self) -> io::Result<Model> {
        let mut model = self.model.as_deref().map_or_else(|| Ok(Model::new()), parsed)?;
        model = self.first_byte.clone().into_iter().fold(model, Model::first_byte);
        model = self.connection_down.into_iter().fold(model, |model, rate| model.connection_down(rate.0));
        model = self.connection_up.into_iter().fold(model, |model, rate| model.connection_up(rate.0));
        model = self.nic.into_iter().fold(model, Model::nic);
        model = self.prefix_requests.into_iter().fold(model, Model::prefix);
        Ok(self.model_seed.into_iter().fold(model, Model::seed))
    }

    fn tls(&self) -> io::Result<Option<Tls>> {
        if !self.tls {
            return Ok(None);
        }
        let mut tls = match (&self.tls_cert, &self.tls_key) {
            (Some(chain), Some(key)) => Tls::given(read(chain)?, read(key)?),
            _ => Tls::generated(),
        };
        tls = self.tls_fault.into_iter().fold(tls, Tls::fault);
        Ok(Some(self.tls_versions.into_iter().fold(tls, Tls::versions)))
    }
}

fn nic(text: &str) -> Result<Nic, String> {
    let rates: Vec<Rate> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
    match rates[..] {
        [baseline] => Ok(Nic { baseline: baseline.0, burst: baseline.0, credit: 0.0 }),
        [baseline, burst, credit] => Ok(Nic { baseline: baseline.0, burst: burst.0, credit: credit.0 }),
        _ => Err("it is RATE, or BASELINE,BURST,CREDIT".to_owned()),
    }
}

fn prefix_limits(text: &str) -> Result<PrefixLimits, String> {
    let limit = |text: &str| text.parse().ok().filter(|limit| *limit > 0.0);
    let limits = text.split_once(',').and_then(|(reads, writes)| Some((limit(reads)?, limit(writes)?)));
    let (reads, writes) = limits.ok_or("it is READS,WRITES a second, such as 5500,3500")?;
    Ok(PrefixLimits { reads, writes, ..PrefixLimits::default() })
}

fn read(path: &Path) -> io::Result<String> {
    let explain = |error: io::Error| io::Error::new(error.kind(), format!("can't read {}: {error}", path.display()));
    std::fs::read_to_string(path).map_err(explain)
}

fn parsed<T: FromStr<Err = String>>(path: &Path) -> io::Result<T> {
    let explain = |error| io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {error}", path.display()));
    read(path)?.parse().map_err(explain)
}

/// A number of bytes, with a unit or without.
fn size(text: &str) -> Result<u64, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
    let unit = units.into_iter().find_map(|(unit, shift)| text.strip_suffix(unit).map(|number| (number, shift)));
    let (number, shift) = unit.unwrap_or((text, 0));
    let bytes = number.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| format!("{text:?} is not a size: give bytes, or a whole number of KiB, MiB, GiB or TiB"))
}

fn synthetic(text: &str) -> Result<(String, Series), String> {
    let (name, spec) = text.split_once('=').ok_or("it has the form NAME=SPEC, such as data=objects:1000,size:1MiB")?;
    let (mut object, mut objects, mut bytes, mut prefix, mut digits, mut seed) = (None, None, None, None, None, None);
    for field in spec.split(',') {
        let (field, value) = field.split_once(':').ok_or_else(|| format!("{field:?} is not FIELD:VALUE"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{field}:{value}: not a whole number"));
        match field {
            "object" => object = Some(value),
            "objects" => objects = Some(number()?),
            "size" => bytes = Some(size(value)?),
            "prefix" => prefix = Some(value),
            "digits" => digits = Some(number()?),
            "seed" => seed = Some(number()?),
            _ => {
                return Err(format!("no such field: {field}; there are object, objects, size, prefix, digits, seed"));
            }
        }
    }
    let bytes = bytes.ok_or("it lacks size:SIZE")?;
    let series = match (object, objects) {
        (Some(key), None) if prefix.is_none() && digits.is_none() => Series::one(key, bytes),
        (Some(_), None) => {
            return Err("prefix and digits go with objects, not with object".to_owned());
        }
        (None, Some(count)) => {
            let series = Series::numbered(prefix.unwrap_or_default(), count, bytes);
            match digits {
                Some(digits) if digits > 64 => return Err(format!("digits:{digits}: at most 64")),
                Some(digits) => series.digits(digits as usize),
                None => series,
            }
        }
        _ => return Err("it has one of object:KEY and objects:COUNT".to_owned()),
    };
    Ok((name.to_owned(), series.seed(seed.unwrap_or(0))))
}
