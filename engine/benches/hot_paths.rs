//! The hot paths by the clock. Run with `cargo bench --features internals --bench hot_paths`.

mod workload;

use workload::{PATHS, Path};

fn main() {
    divan::main();
}

#[divan::bench(args = PATHS.map(|path| path.0))]
fn path(bencher: divan::Bencher<'_, '_>, name: &str) {
    // A hundred rounds make the preparation of a path disappear.
    const ROUNDS: usize = 100;
    let run: Option<Path> = PATHS.iter().find(|path| path.0 == name).map(|path| path.1);
    bencher.counter(divan::counter::ItemsCount::new(ROUNDS)).bench(|| {
        if let Some(run) = run {
            run(ROUNDS);
        }
    });
}
