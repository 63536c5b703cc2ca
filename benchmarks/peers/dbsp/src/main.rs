//! The circuit of `benchmarks/incremental.py` on DBSP itself, with one worker.
//!
//! events(k, v) where v > 100, joined with groups(k, g) on k, by g: count, sum, average, least and greatest v.
//!
//! Events are read and made into rows beforehand; a step's time is that of giving it the rows, of the transaction, and of
//! reading the rows of its output. The aggregates are written as they are fastest: the linear ones in one sum, the extremes in
//! one walk from both ends, then joined.
//!
//! usage: dbsp-peer EVENTS GROUPS KIND FIRST BATCH ANSWER
//!
//! EVENTS has records of four 64-bit integers (id, k, v, weight), GROUPS of two (k, g); i64::MIN is null. KIND is `int`, or the
//! length of a key as text. The first FIRST events are one step, each BATCH after them another. ANSWER is written: a line
//! `g n sum min max avg` for each row of the output's integral. Figures go to standard output, as JSON.

use dbsp::{
    DBData, DBWeight, OrdIndexedZSet, RootCircuit, Runtime, Stream, Timestamp, ZWeight,
    algebra::{F64, HasZero, MonoidValue, Semigroup},
    dynamic::{DataTrait, DynUnit, Erase, WeightTrait},
    mimalloc::MiMalloc,
    operator::Aggregator,
    trace::Cursor,
    typed_batch::IndexedZSetReader,
    utils::{Tup2, Tup3, Tup5},
};
use std::{collections::HashMap, env, fs, io::Write, mem::take, time::Instant};

#[global_allocator]
static ALLOC: MiMalloc = MiMalloc;

const NULL: i64 = i64::MIN;

/// The least and the greatest value, in one walk from each end.
#[derive(Clone)]
struct Extent;

#[derive(Clone)]
struct Wider;

impl Semigroup<Tup2<i64, i64>> for Wider {
    fn combine(a: &Tup2<i64, i64>, b: &Tup2<i64, i64>) -> Tup2<i64, i64> {
        Tup2(a.0.min(b.0), a.1.max(b.1))
    }
}

impl<T: Timestamp, R: DBWeight + MonoidValue> Aggregator<i64, T, R> for Extent {
    type Accumulator = Tup2<i64, i64>;
    type Output = Tup2<i64, i64>;
    type Semigroup = Wider;

    fn aggregate<K, W>(&self, cursor: &mut dyn Cursor<K, DynUnit, T, W>) -> Option<Tup2<i64, i64>>
    where
        K: DataTrait + ?Sized,
        W: WeightTrait + ?Sized,
        i64: Erase<K>,
        R: Erase<W>,
    {
        let here = |cursor: &mut dyn Cursor<K, DynUnit, T, W>| {
            let mut weight: R = HasZero::zero();
            cursor.map_times(&mut |_, w| weight.add_assign_by_ref(unsafe { w.downcast() }));
            (!weight.is_zero()).then(|| unsafe { *cursor.key().downcast::<i64>() })
        };
        let mut least = None;
        while least.is_none() && cursor.key_valid() {
            least = here(cursor);
            if least.is_none() {
                cursor.step_key();
            }
        }
        let least = least?;
        cursor.fast_forward_keys();
        while cursor.key_valid() {
            if let Some(greatest) = here(cursor) {
                return Some(Tup2(least, greatest));
            }
            cursor.step_key_reverse();
        }
        unreachable!("there is a least value but no greatest")
    }

    fn finalize(&self, accumulator: Tup2<i64, i64>) -> Tup2<i64, i64> {
        accumulator
    }
}

type Stats = Tup5<i64, i64, F64, i64, i64>;

fn circuit<K: DBData, V: DBData, G: DBData>(
    events: &Stream<RootCircuit, OrdIndexedZSet<K, V>>,
    groups: &Stream<RootCircuit, OrdIndexedZSet<K, G>>,
    kept: fn(&K, &V) -> bool,
    number: fn(&V) -> i64,
) -> Stream<RootCircuit, OrdIndexedZSet<G, Stats>> {
    let rows = events
        .filter(move |(k, v)| kept(k, v))
        .join_index(groups, move |_, v, g| Some((g.clone(), number(v))));
    let sums = rows.aggregate_linear_postprocess(
        |v| Tup2(1i64, *v),
        |Tup2(n, s): Tup2<i64, i64>| Tup3(n, s, F64::new(s as f64 / n as f64)),
    );
    let extents = rows.aggregate(Extent);
    sums.join_index(&extents, |g, Tup3(n, s, a), Tup2(least, greatest)| {
        Some((g.clone(), Tup5(*n, *s, *a, *least, *greatest)))
    })
}

fn words(path: &str) -> Vec<i64> {
    let bytes = fs::read(path).expect("the file can be read");
    bytes.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect()
}

fn cpu_seconds() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

struct Asked {
    events: Vec<i64>,
    groups: Vec<i64>,
    first: usize,
    batch: usize,
    answer: String,
}

fn run<K: DBData, V: DBData, G: DBData>(
    asked: &Asked,
    key: impl Fn(i64) -> K,
    value: fn(i64) -> V,
    group: fn(i64) -> G,
    kept: fn(&K, &V) -> bool,
    number: fn(&V) -> i64,
    shown: fn(&G) -> String,
) {
    let (mut dbsp, (events, groups, output)) = Runtime::init_circuit(1, move |circuit_| {
        let (events, events_handle) = circuit_.add_input_indexed_zset::<K, V>();
        let (groups, groups_handle) = circuit_.add_input_indexed_zset::<K, G>();
        let stats = circuit(&events, &groups, kept, number);
        Ok((events_handle, groups_handle, stats.accumulate_output()))
    })
    .expect("the circuit can be built");

    let mut rows: Vec<_> =
        asked.groups.chunks_exact(2).map(|r| Tup2(key(r[0]), Tup2(group(r[1]), 1))).collect();
    groups.append(&mut rows);
    dbsp.transaction().expect("the groups can be loaded");
    output.concat();

    let all: Vec<_> =
        asked.events.chunks_exact(4).map(|r| Tup2(key(r[1]), Tup2(value(r[2]), r[3]))).collect();
    let mut batches: Vec<Vec<_>> = vec![all[..asked.first].to_vec()];
    batches.extend(all[asked.first..].chunks(asked.batch).map(|b| b.to_vec()));
    drop(all);

    let mut outputs: Vec<Vec<(G, Stats, ZWeight)>> = Vec::with_capacity(batches.len());
    let mut times = Vec::with_capacity(batches.len());
    let (mut first_cpu, mut cpu, mut start) = (0.0, cpu_seconds(), Instant::now());
    for (number, batch) in batches.iter_mut().enumerate() {
        let step = Instant::now();
        if !batch.is_empty() {
            events.append(&mut take(batch));
            dbsp.transaction().expect("a step");
            outputs.push(output.concat().iter().collect());
        }
        times.push(step.elapsed().as_secs_f64());
        if number == 0 {
            first_cpu = cpu_seconds() - cpu;
            (cpu, start) = (cpu_seconds(), Instant::now());
        }
    }
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);

    let mut integral: HashMap<(G, Stats), ZWeight> = HashMap::new();
    for (g, stats, weight) in outputs.into_iter().flatten() {
        *integral.entry((g, stats)).or_default() += weight;
    }
    let mut file = fs::File::create(&asked.answer).expect("the answer can be written");
    for ((g, Tup5(n, s, a, least, greatest)), weight) in integral {
        if weight != 0 {
            assert_eq!(weight, 1, "a group has one row");
            writeln!(file, "{} {n} {s} {least} {greatest} {:?}", shown(&g), a.into_inner()).unwrap();
        }
    }
    println!(
        "{{\"first_wall\": {}, \"first_cpu\": {first_cpu}, \"wall\": {wall}, \"cpu\": {cpu}, \"steps\": {:?}}}",
        times[0],
        &times[1..]
    );
    dbsp.kill().expect("the circuit ends");
}

fn main() {
    let given: Vec<String> = env::args().skip(1).collect();
    let [events, groups, kind, first, batch, answer] = &given[..] else {
        panic!("usage: dbsp-peer EVENTS GROUPS KIND FIRST BATCH ANSWER")
    };
    let asked = Asked {
        events: words(events),
        groups: words(groups),
        first: first.parse().unwrap(),
        batch: batch.parse().unwrap(),
        answer: answer.clone(),
    };
    if kind == "int" {
        run(&asked, |k| k, |v| v, |g| g, |_: &i64, v: &i64| *v > 100, |v| *v, |g| g.to_string());
        return;
    }
    let digits = kind.parse::<usize>().unwrap() - 1;
    run(
        &asked,
        move |k| (k != NULL).then(|| format!("k{k:0digits$}")),
        |v| (v != NULL).then_some(v),
        |g| (g != NULL).then(|| format!("group-{g:04}")),
        |k: &Option<String>, v: &Option<i64>| k.is_some() && v.is_some_and(|v| v > 100),
        |v| v.unwrap(),
        |g: &Option<String>| g.clone().unwrap_or_else(|| "null".into()),
    );
}
