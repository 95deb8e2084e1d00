/**
 * Devices that break down under load, each in its own way. A model knows neither sockets nor the time: `bench/models/device.ts` is a
 * process that plays one, and a simulation plays them all under a clock of its own.
 */

import { type Link, type Model, sharing, type World } from './model.ts'

/** What the next request takes a device that is not loaded (ms). */
export type Time = () => number

type Build = (world: World, time: Time) => Model

/** The page that takes long, and its time (ms). */
export const SLOW_PAGE = '/slow'
const SLOW = 5_000

/** How long a crashed device is away (ms): it refuses, or resets all. */
const REBOOT = 10_000
const RESETS = 4_000

/** It crashes when it writes to its flash: so often, and for so long (ms). */
const FLASH_EVERY = 12_000
const FLASH_REBOOT = 2_000

/** One connection; `refuses` a second one, or lets it hang until the first is closed. */
function oneConnection(world: World, time: Time, refuses: boolean): Model {
  const open: Link[] = []
  const hanging = new Set<Link>()
  const serve = (link: Link): void =>
    world.after(time(), () => {
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

/** The fifth connection crashes it: for so long (ms) it refuses all connections, or with `resets` it resets them. */
function crashing(world: World, time: Time, reboot: number = REBOOT, resets = false): Model {
  const open = new Set<Link>()
  let crashes = 0
  let downUntil = Number.NEGATIVE_INFINITY
  return {
    get refuses() {
      return !resets && world.now() < downUntil
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
      downUntil = world.now() + reboot
      const all = [...open]
      open.clear()
      for (const each of all) each.reset()
    },
    request(link) {
      world.after(time(), () => {
        if (open.has(link)) link.answer()
      })
    },
    closed: (link) => void open.delete(link),
  }
}

/** Serves any number of requests at once, and crashes from time to time, whatever its load. */
function flashing(world: World, time: Time): Model {
  const all = new Set<Link>()
  const work = unlimited(world, time)
  let downUntil = Number.NEGATIVE_INFINITY
  const crash = (): void => {
    downUntil = world.now() + FLASH_REBOOT
    for (const each of [...all]) each.reset()
    world.after(FLASH_EVERY, crash)
  }
  world.after(FLASH_EVERY, crash)
  return {
    get refuses() {
      return world.now() < downUntil
    },
    crashes: 0,
    connect: (link) => void all.add(link),
    request: work.request,
    closed(link) {
      all.delete(link)
      work.closed(link)
    },
  }
}

const thrashing = (busy: number, knee: number): number => 2 ** -Math.min(Math.max(0, busy - knee), 10)

/** 20 workers, and a queue of 20 behind them. A request that finds it full is reset. */
function workers(world: World, time: Time): Model {
  const busy = new Set<Link>()
  const queue = new Set<Link>()
  function begin(link: Link): void {
    busy.add(link)
    world.after(time(), () => {
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
function leaking(world: World, time: Time): Model {
  let since = world.now()
  let last = since
  return sharing(world, time, (busy) => {
    const now = world.now()
    if (now - last > REST) since = now
    last = now
    return Math.min(1, 8 / busy) / Math.min(1 + (LEAK * (now - since)) / 1_000, 10)
  })
}

/** How long it has each of its capacities (ms). */
const CAPACITY_TIME = 15_000

/** As `thrash`, past 8 requests; from time to time past 2. */
function changing(world: World, time: Time): Model {
  const start = world.now()
  const knee = (): number => (Math.floor((world.now() - start) / CAPACITY_TIME) % 2 === 0 ? 8 : 2)
  return sharing(world, time, (busy) => thrashing(busy, knee()))
}

/** Serves any number of requests at once. */
function unlimited(world: World, timeOf: (path: string) => number): Model {
  const busy = new Set<Link>()
  return {
    refuses: false,
    crashes: 0,
    connect() {},
    request(link, path) {
      busy.add(link)
      world.after(timeOf(path), () => {
        if (busy.delete(link)) link.answer()
      })
    },
    closed: (link) => void busy.delete(link),
  }
}

export interface ModelKind {
  /** How it behaves past what it can take. */
  readonly about: string
  /** The fixed bound with the highest throughput, found by trying all in the simulation of `test/measure`. */
  readonly best: number
  /** The time of one request where none is given (ms). */
  readonly time: number
  readonly build: Build
  /** The proxy restarts then (ms), and knows only what it keeps. */
  readonly restartsAt?: number
}

/** All models, by name. */
export const MODELS = {
  one: {
    about: 'one connection; refuses the second',
    best: 1,
    time: 20,
    build: (w, t) => oneConnection(w, t, true),
  },
  hangs: {
    about: 'one connection; the second hangs until the first is closed',
    best: 1,
    time: 20,
    build: (w, t) => oneConnection(w, t, false),
  },
  crashes: {
    about: 'crashes for 10 s at the fifth connection',
    best: 4,
    time: 20,
    build: (w, t) => crashing(w, t),
  },
  resets: {
    about: 'the same, but resets for 4 s',
    best: 4,
    time: 20,
    build: (w, t) => crashing(w, t, RESETS, true),
  },
  reloads: {
    about: 'crashes for 10 s at the fifth connection; Postern restarts after 30 s',
    best: 4,
    time: 20,
    build: (w, t) => crashing(w, t),
    restartsAt: 30_000,
  },
  flash: {
    about: 'crashes for 2 s when it writes to its flash, whatever its load',
    best: 64,
    time: 20,
    build: flashing,
  },
  thrash: {
    about: 'latency doubles with each request past 4',
    best: 4,
    time: 20,
    build: (w, t) => sharing(w, t, (busy) => thrashing(busy, 4)),
  },
  workers: { about: '20 workers, then a queue of 20, then resets', best: 22, time: 50, build: workers },
  fast: { about: 'fast and unlimited', best: 64, time: 1, build: (w, t) => unlimited(w, t) },
  leaks: { about: 'slows down with time until rested; 8 workers', best: 9, time: 20, build: leaking },
  page: {
    about: 'fast pages, and one that takes 5 s',
    best: 64,
    time: 10,
    build: (w, t) => unlimited(w, (path) => (path === SLOW_PAGE ? SLOW : t())),
  },
  changes: { about: 'capacity 8, then 2, then 8 again', best: 8, time: 20, build: changing },
} satisfies Readonly<Record<string, ModelKind>>

export type ModelName = keyof typeof MODELS

export function isModel(name: string): name is ModelName {
  return Object.hasOwn(MODELS, name)
}
