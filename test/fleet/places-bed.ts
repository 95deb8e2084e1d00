import type { FleetWall, PlacesEvent } from '../../src/fleet/device-wall.ts'
import {
  createFleetPlaces,
  type FleetPlaces,
  PLACES,
  type PlacesMember,
  type SharedPlaces,
} from '../../src/fleet/places.ts'
import type { Script, SharedStore, StoreReply } from '../../src/fleet/shared-store.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { scriptedStore, storeDown } from './scripted-store.ts'

const onBug = (error: unknown): never => {
  throw error
}

/** A sidecar without a device: the test says what it has there. */
export class Sidecar implements PlacesMember {
  readonly name = 'http://192.0.2.7 1-64'
  readonly id: string
  readonly max: number
  readonly events: PlacesEvent[] = []
  readonly clock: MovableClock
  readonly places: FleetPlaces
  inside = 0
  isActive = true
  share = 1
  heard: SharedPlaces | undefined
  until = Number.POSITIVE_INFINITY

  constructor(id: string, store: SharedStore, clock: MovableClock, max = 64) {
    this.id = id
    this.clock = clock
    this.max = max
    this.places = createFleetPlaces({ store, clock, onBug })
  }

  /** The most requests that it has at the device now. */
  get most(): number {
    const { share, until, clock } = this
    return clock.monotonic() < until ? share : Math.min(share, 1)
  }

  standing() {
    const { id: sidecar, inside, isActive, heard } = this
    const known: FleetWall | undefined = heard?.version ? { ...heard } : undefined
    return { sidecar, inside, waiting: 0, level: inside, isActive, known }
  }

  adopt(places: SharedPlaces): void {
    this.heard = places
    this.share = places.share
    this.until = places.until
  }

  alone(): void {
    this.share = Math.min(this.share, 1)
  }

  join(): Promise<void> {
    return this.places.join(this)
  }

  /** Tells what has happened. */
  async tell(kind: PlacesEvent['kind'], limit = 0): Promise<void> {
    this.events.push({ kind, limit, at: this.clock.monotonic() })
    await this.places.news()
  }

  /** The wall that it knows; 0: none. */
  get wall(): number | undefined {
    return this.heard?.sum
  }
}

/** A server that does what the script says, in this process, so that its time moves with the clock of the test. */
export function startServer() {
  const clock = stillClock()
  const fields = new Map<string, string>()
  const listeners = new Set<() => void>()
  const now = (): string => (1_000_000_000_000 + clock.monotonic()).toFixed(0)

  function answer(_script: Script, args: readonly string[]): StoreReply {
    const [, , id = '', before = '', beat = '', wall = '', nextWall = '', news = ''] = args
    for (const [name, text] of fields)
      if (Number(/^(\d+) /.exec(text)?.[1]) < Number(now()) - 3_600_000) fields.delete(name)
    const swap = (field: string, old: string, next: string): boolean => {
      const isSame = (fields.get(field) ?? '') === old
      if (isSame) fields.set(field, next)
      return isSame
    }
    swap('since', '', now())
    if (nextWall !== '') swap('wall', wall, nextWall)
    if (swap(id, before, `${now()} ${beat}`) && news === 'news') for (const hear of listeners) hear()
    return [now(), [...fields].flat()]
  }

  return {
    clock,
    fields,
    /** Called when the stream of the store tells that a sidecar has come, or has other requests than before. */
    listeners,
    /** The server was emptied. */
    empty: () => fields.clear(),
    /** A connection to it. `away`: no answer comes. `loses`: what is asked is done, but the answer is lost. `late`: it is done later. */
    connect() {
      const late: (() => void)[] = []
      const network = {
        away: false,
        loses: false,
        late: false,
        deliver() {
          for (const done of late.splice(0)) done()
        },
      }
      const store = scriptedStore((script, args) => {
        if (script !== PLACES) throw new Error('another script')
        if (network.late) late.push(() => void answer(script, args))
        if (network.away || network.late) throw storeDown()
        const reply = answer(script, args)
        if (network.loses) throw storeDown()
        return reply
      })
      return { store, network }
    },
  }
}
