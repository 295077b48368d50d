//! What checksums cost on the whole way, beside a bare pass over the same bytes: processor time of this process,
//! the server being another one.
//!
//! `cargo build --release -p wirespeed-origin && cargo bench --features internals --bench checksums`.
//! `WIRESPEED_ORIGIN` names another server binary, `MIB` and `ROUNDS` another size and number. All
//! rows of a round are measured one after the other, so that what else the machine does meets all of them;
//! shown are medians, and the extremes.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use wirespeed::wire::checksum::{ChecksumAlgorithm, Sum, Summer};
use wirespeed::{Client, Credentials, Verified};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What is summed at a time where the question is what a sum costs in the cache.
const IN_CACHE: usize = 1 << 20;

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn main() -> Outcome<()> {
    let number = |name: &str, otherwise: usize| -> Outcome<usize> {
        std::env::var(name).map_or(Ok(otherwise), |text| Ok(text.parse()?))
    };
    let size = number("MIB", 512)? << 20;
    let rounds = number("ROUNDS", 9)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(measure(size, rounds))
}

fn server(folder: &Path) -> Outcome<(Server, String)> {
    let binary = match std::env::var_os("WIRESPEED_ORIGIN") {
        Some(path) => PathBuf::from(path),
        None => std::env::current_exe()?.with_file_name("../wirespeed-origin"),
    };
    let port_file = folder.join("port");
    let child = Command::new(&binary)
        .args(["--bucket", "data", "--discard", "sink", "--etag", "fast", "--threads", "1", "--port-file"])
        .arg(&port_file)
        // The first upload of the client that is to send headers meets this.
        .args(["--fault", "verb=put,bucket=sink,times=1,action=status:501"])
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("{} cannot be started: {error}", binary.display()))?;
    let server = Server(child);
    for _ in 0..200 {
        if let Ok(port) = std::fs::read_to_string(&port_file)
            && !port.trim().is_empty()
        {
            return Ok((server, format!("http://127.0.0.1:{}", port.trim())));
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    Err("the server does not start".into())
}

fn client(endpoint: &str, part_size: u64) -> Outcome<Client> {
    let builder = Client::builder()
        .endpoint_url(endpoint)
        .credentials(Credentials::new("wirespeed", "wirespeed-secret"))
        .concurrency(16)
        .part_size(part_size);
    Ok(builder.set("payload_signing", "unsigned")?.set("multipart_threshold", "24MiB")?.build()?)
}

/// The processor time of all threads of this process so far.
fn cpu() -> Outcome<Duration> {
    let mut total = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        // A thread may end meanwhile; those that work here do not.
        if let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) {
            total += text.split(' ').next().ok_or("no time")?.parse::<u64>()?;
        }
    }
    Ok(Duration::from_nanos(total))
}

async fn measure(size: usize, rounds: usize) -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let (_server, endpoint) = server(folder.path())?;
    // Parts this large are followed by their sums; a client that was refused once sends headers.
    let framing = client(&endpoint, 32 << 20)?;
    let unframed = client(&endpoint, 32 << 20)?;
    unframed.put("sink", "first").bytes(vec![1; 20 << 20]).await?;
    let client = client(&endpoint, 8 << 20)?;
    let content: Bytes = (0..size).map(|at| (at ^ (at >> 8) ^ (at >> 16).wrapping_mul(31)) as u8).collect();
    client.put("data", "large").bytes(content.clone()).await?;
    let small: Vec<(String, Bytes)> =
        (0..4096).map(|at| (format!("small/{at}"), content.slice(at << 16 & (size - 1)..).slice(..64 << 10))).collect();
    let small_keys: Vec<String> = small.iter().map(|(key, _)| key.clone()).collect();
    let mut uploads = client.put_many("data").bytes(small.clone())?;
    while let Some((_, outcome)) = uploads.next().await {
        outcome?;
    }
    let algorithm = ChecksumAlgorithm::Crc64Nvme;
    let whole = Verified::FullObject(algorithm);
    let mut rows: Vec<(&str, usize, Vec<f64>)> = [
        ("bare pass, from memory", size),
        ("bare pass, in cache", size),
        ("GET unverified", size),
        ("GET verified", size),
        ("PUT without", size),
        ("PUT, 8 MiB, header", size),
        ("PUT, 32 MiB, header", size),
        ("PUT, 32 MiB, trailer", size),
        ("GET 64 KiB unverified", 4096 << 16),
        ("GET 64 KiB verified", 4096 << 16),
    ]
    .map(|(name, bytes)| (name, bytes, Vec::new()))
    .into();
    let mut memory = vec![0; size];
    for round in 0..=rounds {
        for (index, (_, bytes, samples)) in rows.iter_mut().enumerate() {
            let before = cpu()?;
            match index {
                0 => drop(std::hint::black_box(Sum::of(algorithm, &content))),
                1 => {
                    let mut summer = Summer::new(algorithm);
                    (0..size / IN_CACHE).for_each(|_| summer.update(&content[..IN_CACHE]));
                    std::hint::black_box(summer.finish());
                }
                2 | 3 => {
                    let get = client.get("data", "large").verify(index == 3);
                    let (back, _, info) = get.into_owned(std::mem::take(&mut memory)).await?;
                    memory = back;
                    assert_eq!(info.verified == whole, index == 3);
                }
                4 => drop(client.put("sink", "k").checksum(None).bytes(content.clone()).await?),
                5 => drop(client.put("sink", "k").bytes(content.clone()).await?),
                6 => drop(unframed.put("sink", "k").bytes(content.clone()).await?),
                7 => drop(framing.put("sink", "k").bytes(content.clone()).await?),
                _ => {
                    let mut reads = client.get_many("data").verify(index == 9).discard(small_keys.clone())?;
                    while let Some((_, info)) = reads.next().await {
                        assert_eq!(info?.verified == whole, index == 9);
                    }
                }
            }
            // The first round warms connections and memory.
            if round > 0 {
                samples.push((cpu()? - before).as_secs_f64() * (1 << 30) as f64 / *bytes as f64);
            }
        }
    }
    println!("core-seconds per GiB, {} MiB, {rounds} rounds: median [least..most]", size >> 20);
    for (name, _, samples) in &mut rows {
        samples.sort_by(f64::total_cmp);
        let (least, median, most) = (samples[0], samples[samples.len() / 2], samples[samples.len() - 1]);
        println!("{name:<24} {median:.4} [{least:.4}..{most:.4}]");
    }
    Ok(())
}
