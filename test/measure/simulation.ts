import type { Link, World } from '../../bench/models/model.ts'
import { MODELS, type ModelKind, type ModelName, SLOW_PAGE } from '../../bench/models/models.ts'
import { LongPaths } from '../../src/forward/long-paths.ts'

/** The law that decides how many requests are at the device: the events that it gets, and its bound. */
export interface Law<P = unknown> {
  readonly places: number
  /** Requests for paths that usually take long get at most half of the places, as in `BoundedQueue`. */
  readonly keepsHalf?: boolean
  sent?(path: string, level: number, now: number): P
  opens?(present: number, now: number): void
  left?(place: P): void
  answered?(place: P, now: number): void
  refused?(inside: number, now: number): void
  reset?(inside: number, now: number): void
  look?(inside: number, waitsSince: number, now: number): void
  /** The law after a restart of the proxy. */
  restarted?(): Law<P>
}

export interface Run {
  readonly clients?: number
  /** How long the clients ask (ms of the simulation), and from when it is measured. */
  readonly time?: number
  /** What comes earlier is not measured (ms). */
  readonly from?: number
  /** So many responses are not measured. */
  readonly warmUp?: number
  /** Multiplies each time of the device, by chance. 0: none. */
  readonly noise?: number
  readonly seed?: number
}

export interface Outcome {
  /** Per second. */
  readonly throughput: number
  /** Milliseconds, with the wait for a place. */
  readonly p99: number
  readonly failed: number
  readonly crashes: number
  readonly crashedAt: readonly number[]
  /** The bound over time: [ms, bound]. */
  readonly course: readonly (readonly [number, number])[]
}

/** Events in the order of their time. */
class Agenda implements World {
  readonly #heap: { readonly at: number; readonly order: number; readonly run: () => void }[] = []
  #now = 0
  #order = 0
  now(): number {
    return this.#now
  }
  after(time: number, run: () => void): void {
    const heap = this.#heap
    this.#order += 1
    const entry = { at: this.#now + time, order: this.#order, run }
    let at = heap.push(entry) - 1
    for (let above = (at - 1) >> 1; at > 0 && later(heap[above], entry); above = (at - 1) >> 1) {
      heap[at] = heap[above] ?? entry
      heap[above] = entry
      at = above
    }
  }
  /** Runs all events before `end`. */
  runUntil(end: number): void {
    const heap = this.#heap
    for (let first = heap[0]; first !== undefined && first.at < end; first = heap[0]) {
      const last = heap.pop()
      if (last !== undefined && heap.length > 0) {
        heap[0] = last
        for (let at = 0; ; ) {
          let least = at
          for (const below of [2 * at + 1, 2 * at + 2])
            if (below < heap.length && later(heap[least], heap[below])) least = below
          if (least === at) break
          const moved = heap[least]
          heap[least] = heap[at] ?? last
          heap[at] = moved ?? last
          at = least
        }
      }
      this.#now = first.at
      first.run()
    }
    this.#now = end
  }
}

type Entry = { readonly at: number; readonly order: number }
function later(a: Entry | undefined, b: Entry | undefined): boolean {
  if (a === undefined || b === undefined) return false
  return a.at > b.at || (a.at === b.at && a.order > b.order)
}

/** mulberry32. */
export function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const TRIP = 0.2
const CONNECT_TIMEOUT = 5_000
const RECENT = 1_000
/** The default of `upstream.stream_after` (ms). */
const STREAM_AFTER = 2_000

/** One connection of the simulated proxy. */
class Wire<P> implements Link {
  open = false
  current:
    | { readonly path: string; readonly isLong: boolean; sentAt: number; place: P | undefined }
    | undefined
  /** It has carried a response. */
  worked = false
  refusedFor = 0
  done: (ok: boolean) => void = () => {}
  onAnswer = (): void => {}
  onReset = (): void => {}
  answer(): void {
    this.onAnswer()
  }
  reset(): void {
    this.onReset()
  }
}

/** Clients in a closed loop ask a model through a proxy with this law, under a clock of its own. The proxy does what Postern does. */
export function simulate<P = unknown>(
  name: ModelName,
  first: Law<P>,
  { clients = 64, time = 60_000, from = 0, warmUp = 200, noise = 0, seed = 1 }: Run = {},
): Outcome {
  let law = first
  const agenda = new Agenda()
  const random = randomNumbers(seed)
  const { time: usual, restartsAt }: ModelKind = MODELS[name]
  const model = MODELS[name].build(agenda, () => usual * (1 - noise - noise * Math.log(1 - random())))
  const idle: Wire<P>[] = []
  const asking = new Set<Wire<P>>()
  const wires = new Set<Wire<P>>()
  interface Waiting {
    readonly path: string
    readonly run: () => void
  }
  const queue: Waiting[] = []
  const longPaths = new LongPaths()
  let inside = 0
  let longInside = 0
  let workedAt = Number.NEGATIVE_INFINITY
  const times: number[] = []
  let answered = 0
  let measuredFrom = 0
  let failed = 0
  const crashedAt: number[] = []
  const course: [number, number][] = []

  function close(wire: Wire<P>): void {
    wires.delete(wire)
    if (wire.open) {
      wire.open = false
      model.closed(wire)
    }
  }

  function open(wire: Wire<P>): void {
    wires.add(wire)
    law.opens?.(wires.size, agenda.now())
    agenda.after(TRIP, () => {
      if (!wires.has(wire)) return
      const before = model.crashes
      if (model.refuses) {
        law.refused?.(inside, agenda.now())
        wires.delete(wire)
        retry(wire)
        return
      }
      wire.open = true
      wire.worked = false
      model.connect(wire)
      if (model.crashes > before) crashedAt.push(agenda.now())
      if (wire.open) send(wire)
    })
  }

  function retry(wire: Wire<P>): void {
    const pause = Math.min(wire.refusedFor + 2, 250)
    const given = wire.refusedFor === 0 && agenda.now() - workedAt > RECENT
    if (given || wire.refusedFor + pause > CONNECT_TIMEOUT) {
      close(wire)
      finish(wire, false)
      return
    }
    wire.refusedFor += pause
    agenda.after(pause, () => openAgain(wire))
  }

  /** The bound that holds now decides, as for a new connection. */
  function openAgain(wire: Wire<P>): void {
    if (wire.current === undefined) return
    if (wires.size < law.places) open(wire)
    else agenda.after(2, () => openAgain(wire))
  }

  /** All connections close, the clients ask again, and the law knows what it has kept. */
  function restart(): void {
    law = law.restarted?.() ?? law
    for (const wire of [...wires]) close(wire)
    idle.length = 0
    for (const wire of [...asking]) finish(wire, false)
  }

  function send(wire: Wire<P>): void {
    const { current } = wire
    if (current === undefined) return
    current.sentAt = agenda.now()
    current.place ??= law.sent?.(current.path, inside, agenda.now())
    agenda.after(TRIP, () => {
      if (wire.open && wire.current === current) model.request(wire, current.path)
    })
  }

  function finish(wire: Wire<P>, ok: boolean): void {
    asking.delete(wire)
    if (wire.current?.place !== undefined) law.left?.(wire.current.place)
    if (wire.current?.isLong) longInside -= 1
    wire.current = undefined
    wire.done(ok)
    inside -= 1
    pump()
  }

  function pump(): void {
    while (inside < law.places) {
      const next = queue.splice(nextIn(), 1)[0]
      if (next === undefined) return
      inside += 1
      next.run()
    }
  }

  /** The position of the next one in the queue. Those that take long go first, and have at most half of the places: others come. */
  function nextIn(): number {
    if (law.keepsHalf !== true || !longPaths.any) return 0
    const isLong = longInside < Math.max(1, law.places >> 1)
    const at = queue.findIndex(({ path }) => longPaths.has(path) === isLong)
    return at < 0 ? (isLong ? 0 : queue.length) : at
  }

  function ask(path: string, done: (ok: boolean) => void): void {
    const wire = idle.pop() ?? new Wire<P>()
    const isNew = !wire.open
    asking.add(wire)
    const isLong = longPaths.has(path)
    if (isLong) longInside += 1
    wire.current = { path, isLong, sentAt: agenda.now(), place: undefined }
    wire.done = done
    wire.refusedFor = 0
    wire.onReset = () => {
      if (!wire.open) return
      close(wire)
      const at = idle.indexOf(wire)
      if (at >= 0) {
        idle.splice(at, 1)
      } else {
        // It is sent again.
        if (!wire.worked) law.reset?.(inside, agenda.now())
        retry(wire)
      }
    }
    wire.onAnswer = () =>
      agenda.after(TRIP, () => {
        const { current } = wire
        if (!wire.open || current === undefined) return
        workedAt = agenda.now()
        wire.worked = true
        longPaths.answered(current.path, agenda.now() - current.sentAt, STREAM_AFTER)
        if (current.place !== undefined) law.answered?.(current.place, agenda.now())
        if (inside > law.places) close(wire)
        else idle.push(wire)
        finish(wire, true)
      })
    if (isNew) {
      open(wire)
    } else send(wire)
  }

  function client(index: number): void {
    const path = name === 'page' && index % 8 === 0 ? SLOW_PAGE : '/'
    const since = agenda.now()
    const run = (): void =>
      ask(path, (ok) => {
        if (ok) answered += 1
        if (answered === warmUp) measuredFrom = Math.max(from, agenda.now())
        if (answered > warmUp && agenda.now() >= from) {
          if (ok) times.push(agenda.now() - since)
          else failed += 1
        }
        agenda.after(ok ? 0.1 : 50, () => client(index))
      })
    queue.push({ path, run })
    pump()
  }

  const look = (): void => {
    if (queue.length > 0) law.look?.(inside, 0, agenda.now())
    pump()
    if (course.at(-1)?.[1] !== law.places) course.push([Math.round(agenda.now()), law.places])
    agenda.after(50, look)
  }
  for (let index = 0; index < clients; index++) agenda.after(index / 10, () => client(index))
  look()
  if (restartsAt !== undefined) agenda.after(restartsAt, restart)
  agenda.runUntil(time)
  times.sort((a, b) => a - b)
  return {
    throughput: (1000 * times.length) / Math.max(1, time - measuredFrom),
    p99: times[Math.floor(times.length * 0.99)] ?? Number.POSITIVE_INFINITY,
    failed,
    crashes: model.crashes,
    crashedAt,
    course,
  }
}

/** The fixed bounds that are tried. */
const BOUNDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 18, 20, 22, 24, 28, 32, 40, 48, 64]

/** The best of all fixed bounds. */
export function bestFixed(name: ModelName, run: Run = {}): Outcome & { readonly places: number } {
  let best: (Outcome & { readonly places: number }) | undefined
  for (const places of BOUNDS) {
    const outcome = { ...simulate(name, { places }, run), places }
    if (best === undefined || outcome.throughput > 1.001 * best.throughput) best = outcome
  }
  if (best === undefined) throw new Error('no bound was tried')
  return best
}
