/**
 * Devices that break down under load, each in its own way. A model knows neither sockets nor the time: `bench/models/device.ts` is a
 * process that plays one, and a simulation plays them all under a clock of its own.
 */

export interface World {
  /** Milliseconds, from any beginning. */
  now(): number
  after(time: number, run: () => void): void
}

/** One connection of a client to the device. It carries one request at a time. */
export interface Link {
  /** The head of the response leaves now. */
  answer(): void
  /** The device resets the connection. */
  reset(): void
}

export interface Model {
  /** Whether the device refuses connections now. */
  readonly refuses: boolean
  connect(link: Link): void
  /** @param path without the query */
  request(link: Link, path: string): void
  /** A connection has closed, by either side, also one that the model has reset. */
  closed(link: Link): void
  /** How often it has crashed. */
  readonly crashes: number
}

/** @param time what one request takes a device that is not loaded (ms) */
type Build = (world: World, time: number) => Model

/** The page that takes long, and its time (ms). */
export const SLOW_PAGE = '/slow'
const SLOW = 5_000

/** How long a crashed device is away (ms). */
const REBOOT = 10_000

/** How a model serves: the time of a request (ms) that begins as one of `busy`, the others included. */
type Time = (busy: number, path: string) => number

/** Serves all requests at once. What one of them takes is known when it begins. */
function serving(world: World, timeOf: Time, more: Partial<Model> = {}): Model {
  const busy = new Set<Link>()
  return {
    refuses: false,
    crashes: 0,
    connect() {},
    request(link, path) {
      busy.add(link)
      world.after(timeOf(busy.size, path), () => {
        if (busy.delete(link)) link.answer()
      })
    },
    closed: (link) => void busy.delete(link),
    ...more,
  }
}

/** One connection; `refuses` a second one, or lets it hang until the first is closed. */
function oneConnection(world: World, time: number, refuses: boolean): Model {
  const open: Link[] = []
  const hanging = new Set<Link>()
  const serve = (link: Link): void =>
    world.after(time, () => {
      if (open[0] === link) link.answer()
    })
  return {
    get refuses() {
      return refuses && open.length > 0
    },
    crashes: 0,
    connect(link) {
      if (refuses && open.length > 0) link.reset()
      else open.push(link)
    },
    request(link) {
      if (open[0] === link) serve(link)
      else hanging.add(link)
    },
    closed(link) {
      const at = open.indexOf(link)
      if (at >= 0) open.splice(at, 1)
      hanging.delete(link)
      const [first] = open
      if (first !== undefined && hanging.delete(first)) serve(first)
    },
  }
}

/** The fifth connection crashes it. */
function crashing(world: World, time: number): Model {
  const open = new Set<Link>()
  let crashes = 0
  let downUntil = Number.NEGATIVE_INFINITY
  return {
    get refuses() {
      return world.now() < downUntil
    },
    get crashes() {
      return crashes
    },
    connect(link) {
      if (world.now() < downUntil) {
        link.reset()
        return
      }
      open.add(link)
      if (open.size < 5) return
      crashes += 1
      downUntil = world.now() + REBOOT
      const all = [...open]
      open.clear()
      for (const each of all) each.reset()
    },
    request(link) {
      world.after(time, () => {
        if (open.has(link)) link.answer()
      })
    },
    closed: (link) => void open.delete(link),
  }
}

const doubling = (time: number, busy: number, knee: number): number =>
  time * 2 ** Math.min(Math.max(0, busy - knee), 10)

/** 20 workers, and a queue of 20 behind them. A request that finds it full is reset. */
function workers(world: World, time: number): Model {
  const busy = new Set<Link>()
  const queue = new Set<Link>()
  function begin(link: Link): void {
    busy.add(link)
    world.after(time, () => {
      if (busy.has(link)) link.answer()
      end(link)
    })
  }
  function end(link: Link): void {
    queue.delete(link)
    if (!busy.delete(link)) return
    const [next] = queue
    if (next === undefined) return
    queue.delete(next)
    begin(next)
  }
  return {
    refuses: false,
    crashes: 0,
    connect() {},
    request(link) {
      if (busy.size < 20) begin(link)
      else if (queue.size < 20) queue.add(link)
      else link.reset()
    },
    closed: end,
  }
}

/** How much slower it becomes while it works (per second), and the rest (ms) that restores it. */
const LEAK = 0.03
const REST = 1_000

/** Slows down with its work, also when nobody overloads it, until it has a rest. Past 8 requests each one makes the others slower. */
function leaking(world: World, time: number): Model {
  let since = world.now()
  let last = since
  return serving(world, (busy) => {
    const now = world.now()
    if (now - last > REST) since = now
    last = now
    const slower = Math.min(1 + (LEAK * (now - since)) / 1_000, 10)
    return slower * time * Math.max(1, busy / 8)
  })
}

/** How long it has each of its capacities (ms). */
const CAPACITY_TIME = 15_000

/** As `thrash`, past 8 requests; from time to time past 2. */
function changing(world: World, time: number): Model {
  const start = world.now()
  return serving(world, (busy) => {
    const phase = Math.floor((world.now() - start) / CAPACITY_TIME) % 2
    return doubling(time, busy, phase === 0 ? 8 : 2)
  })
}

/** All models, by name: how they behave past what they can take, and the time of one request where none is given (ms). */
export const MODELS = {
  one: { about: 'one connection; refuses the second', time: 20, build: (w, t) => oneConnection(w, t, true) },
  hangs: {
    about: 'one connection; the second hangs until the first is closed',
    time: 20,
    build: (w, t) => oneConnection(w, t, false),
  },
  crashes: { about: 'crashes for 10 s at the fifth connection', time: 20, build: crashing },
  thrash: {
    about: 'latency doubles with each request past 4',
    time: 20,
    build: (w, t) => serving(w, (busy) => doubling(t, busy, 4)),
  },
  workers: { about: '20 workers, then a queue of 20, then resets', time: 50, build: workers },
  fast: { about: 'fast and unlimited', time: 1, build: (w, t) => serving(w, () => t) },
  leaks: { about: 'slows down with time until rested; 8 workers', time: 20, build: leaking },
  page: {
    about: 'fast pages, and one that takes 5 s',
    time: 10,
    build: (w, t) => serving(w, (_busy, path) => (path === SLOW_PAGE ? SLOW : t)),
  },
  changes: { about: 'capacity 8, then 2, then 8 again', time: 20, build: changing },
} satisfies Readonly<Record<string, { readonly about: string; readonly time: number; readonly build: Build }>>

export type ModelName = keyof typeof MODELS

export function isModel(name: string): name is ModelName {
  return Object.hasOwn(MODELS, name)
}
