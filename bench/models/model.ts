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

/** How fast each request goes on while `busy` are served: 1 if the device is not loaded. */
type Speed = (busy: number) => number

/** Serves all requests at once, and each at the speed that their number leaves it. */
export function sharing(world: World, timeOf: (path: string) => number, speedOf: Speed): Model {
  const left = new Map<Link, number>()
  let since = world.now()
  let speed = 1
  let changes = 0
  /** Brings all requests up to now, then waits for the one that ends first. */
  function goOn(): void {
    const now = world.now()
    for (const [link, rest] of left) left.set(link, rest - (now - since) * speed)
    since = now
    const done = [...left].filter(([, rest]) => rest < 0.01).map(([link]) => link)
    for (const link of done) left.delete(link)
    speed = speedOf(left.size)
    changes += 1
    const change = changes
    const next = Math.min(...left.values()) / speed
    // The speed may change meanwhile for reasons of the device's own.
    if (left.size > 0) world.after(Math.min(next, 250), () => change === changes && goOn())
    for (const link of done) link.answer()
  }
  return {
    refuses: false,
    crashes: 0,
    connect() {},
    request(link, path) {
      left.set(link, timeOf(path) + (world.now() - since) * speed)
      goOn()
    },
    closed(link) {
      if (left.delete(link)) goOn()
    },
  }
}
