import type { ClientMemory } from '../http/exchange.ts'
import { afterTurn, type Clock, forgetTurn, type Postponed, type Timer } from '../system/clock.ts'
import { TurnBudget } from '../system/turn-budget.ts'
import { type FairShare, fairShare } from './fair-share.ts'
import { RememberedGrants } from './remembered-grants.ts'

/** What the account tells apart: the `of` label of `postern_memory_bytes`. */
export const KINDS = [
  'connections',
  'requests',
  'bodies',
  'responses',
  'tunnels',
  'hashes',
  'page',
  'log',
] as const
export type Kind = (typeof KINDS)[number]

/**
 * The stages of relief. Those before a stage stay in effect with it.
 *
 * - `streams`: a new HTTP/2 connection is offered fewer streams.
 * - `answers`: an answer of Postern's own that its client does not read is given up.
 * - `idle`: connections without work close, those of clients above the fair share.
 * - `shares`: a client above the fair share gets nothing more, and loses what it holds.
 * - `grants`: clients with a live grant share first. A client that holds nothing may still come, to log in.
 */
export const STAGES = ['streams', 'answers', 'idle', 'shares', 'grants'] as const
export type Stage = (typeof STAGES)[number]

/** The fullness from which on a stage is in effect. */
const BEGINS: Readonly<Record<Stage, number>> = {
  streams: 0.65,
  answers: 0.7,
  idle: 0.75,
  shares: 0.8,
  grants: 0.95,
}

/** From this fullness on, clients above the fair share lose what they hold, until it is below the one of `shares`. */
const RELIEF = 0.88

/** What is refused or given up: the `what` label of `postern_shed_total`. */
export const SHED = ['streams', 'answer', 'connection', 'stream', 'request', 'upload'] as const
export type Shed = (typeof SHED)[number]

/** For how long (ms) the client has not read an own answer, or a connection has had no work, before it may be given up. */
export const PATIENCE = 1_000

/** The fewest streams that an HTTP/2 connection is offered. */
const FEWEST_STREAMS = 8

/** The time (ms) between two looks at all holders while a stage is in effect. */
const LOOK = 250

/** How long (ms) a fair share counts until it is computed anew. */
const SHARE_LASTS = 50

/** What can be taken from a client: a connection, or one request behind a trusted proxy. */
export interface Holder {
  /** A request is open. */
  readonly working: boolean
  /** A request has a place at the device, or is a tunnel to it. */
  readonly atDevice: boolean
  /** Gives up the own answers that the client has not read for `PATIENCE`. Returns how many. */
  giveUpUnread(now: number): number
  /** Ends it at once. */
  drop(): void
}

/** The holder of a closed holding. */
const GONE: Holder = { working: false, atDevice: false, giveUpUnread: () => 0, drop() {} }

/** What one client holds: an IPv4 address, or the /64 prefix of an IPv6 address (C17). */
export class ClientAccount {
  readonly key: string
  bytes = 0
  readonly holdings: Set<Holding> = new Set()
  /** It carries the requests of many clients: they are judged, it is not. */
  readonly isProxy: boolean
  /** The grant that last admitted a request of it. */
  grant: string | undefined
  /** What is done for it in a turn of the event loop. */
  readonly turns: TurnBudget

  constructor(key: string, isProxy: boolean, grant: string | undefined, turns: TurnBudget) {
    this.key = key
    this.isProxy = isProxy
    this.grant = grant
    this.turns = turns
  }

  /** The budget for a connection itself: its handshake, and the reading of its bytes. Each connection of a trusted proxy has one of its own. */
  turnsOfConnection(): TurnBudget {
    return this.isProxy ? new TurnBudget() : this.turns
  }
}

type Sums = Record<Kind, number>

const nothing = (): Sums => ({
  connections: 0,
  requests: 0,
  bodies: 0,
  responses: 0,
  tunnels: 0,
  hashes: 0,
  page: 0,
  log: 0,
})

/** What one holder holds, in bytes by kind. A change is a few additions, so that a request pays nothing for it. */
export class Holding implements ClientMemory {
  readonly account: Account
  readonly client: ClientAccount
  holder: Holder
  bytes = 0
  /** When it was first seen without work; undefined while it works. */
  idleSince: number | undefined = undefined
  readonly #sums = nothing()
  #open = true

  constructor(account: Account, client: ClientAccount, holder: Holder) {
    this.account = account
    this.client = client
    this.holder = holder
  }

  /** Adds bytes, or removes them if negative. Has no effect after `close`. */
  add(kind: Kind, change: number): void {
    if (!this.#open || change === 0) return
    this.#sums[kind] += change
    this.bytes += change
    this.client.bytes += change
    this.account.add(kind, change)
  }

  set(kind: Kind, bytes: number): void {
    this.add(kind, bytes - this.#sums[kind])
  }

  /** The bytes of one kind that it holds. */
  held(kind: Kind): number {
    return this.#sums[kind]
  }

  mayHold(bytes: number): boolean {
    return this.account.mayHold(this.client, bytes, 'upload')
  }

  hold(change: number): void {
    this.add('bodies', change)
  }

  admitted(grant: string): void {
    this.client.grant = grant
  }

  /** Gives back all that is held. */
  close(): void {
    if (!this.#open) return
    for (const kind of KINDS) this.set(kind, 0)
    this.#open = false
    // An exchange may be kept for longer, and must not keep the connection.
    this.holder = GONE
    this.account.forget(this)
  }
}

export interface AccountDependencies {
  /** The most that all clients together may hold (bytes). */
  readonly limit: number
  readonly clock: Pick<Clock, 'monotonic' | 'every'>
  /** Called when another stage is in effect; undefined: none. */
  readonly onStage: (stage: Stage | undefined) => void
  readonly onShed: (stage: Stage, what: Shed) => void
}

/**
 * The account of what clients make the process hold (C26), over all of them and by client. As it fills, it sheds in stages: the client
 * that holds most loses first, and a client below the fair share loses nothing.
 */
export class Account {
  readonly limit: number
  readonly sums: Sums = nothing()
  /** What all clients hold (bytes). */
  total = 0
  stage: Stage | undefined = undefined
  readonly #deps: AccountDependencies
  readonly #clients = new Map<string, ClientAccount>()
  /**
   * What was done in this turn of the event loop for clients that hold nothing any more. The next request of a client behind a trusted proxy
   * often comes within the turn.
   */
  readonly #turns = new Map<string, TurnBudget>()
  /** The grants of clients that hold nothing. */
  readonly #remembered: RememberedGrants
  /** The fullness by the memory of the process, at the last look. */
  #real = 0
  /** A look is due when the total reaches it. */
  #lookAt: number
  #looking: Timer | undefined
  #soon: Postponed | undefined
  #idleLookAt = Number.NEGATIVE_INFINITY
  #share: FairShare = { withGrant: 0, withoutGrant: 0 }
  #shareUntil = Number.NEGATIVE_INFINITY

  constructor(deps: AccountDependencies) {
    this.#deps = deps
    this.limit = deps.limit
    this.#remembered = new RememberedGrants(deps.clock)
    this.#lookAt = BEGINS.streams * this.limit
  }

  /** How full the account is, or the memory of the process if that is fuller: 1 is the limit. */
  get fullness(): number {
    return Math.max(this.total / this.limit, this.#real)
  }

  /** The account of a client: a new, empty one if the client holds nothing. */
  client(key: string, isProxy: boolean): ClientAccount {
    const known = this.#clients.get(key)
    if (known !== undefined) return known
    const turns = this.#turns.get(key) ?? new TurnBudget()
    return new ClientAccount(key, isProxy, this.#remembered.grantOf(key), turns)
  }

  open(client: ClientAccount, holder: Holder): Holding {
    // Two connections of a client that held nothing may have got an account each.
    const known = this.#clients.get(client.key) ?? client
    const holding = new Holding(this, known, holder)
    this.#clients.set(known.key, known)
    known.holdings.add(holding)
    return holding
  }

  /** Called by the holding when it closes. */
  forget(holding: Holding): void {
    const { client } = holding
    client.holdings.delete(holding)
    if (client.holdings.size > 0) return
    this.#clients.delete(client.key)
    if (this.#turns.size === 0) afterTurn(this.#forgetTurns)
    this.#turns.set(client.key, client.turns)
    if (client.grant !== undefined) this.#remembered.remember(client.key, client.grant)
  }

  readonly #forgetTurns = (): void => this.#turns.clear()

  /** Adds bytes that a holding, or no client, is charged for. */
  add(kind: Kind, change: number): void {
    this.sums[kind] += change
    this.total += change
    if (this.total >= this.#lookAt && change > 0) this.#soon ??= afterTurn(this.#look)
  }

  /** Sets the bytes of a kind that no client is charged for. */
  set(kind: Kind, bytes: number): void {
    this.add(kind, bytes - this.sums[kind])
  }

  /** Whether a client may hold so many bytes more. If not, `what` counts as shed. */
  mayHold(client: ClientAccount, bytes: number, what: Shed): boolean {
    const { fullness } = this
    if (fullness < BEGINS.shares || client.isProxy) return true
    if (client.bytes + bytes <= this.#shareOf(client)) return true
    // A client that holds nothing may come to log in.
    if (client.bytes === 0 && fullness < 1) return true
    this.#deps.onShed(fullness < BEGINS.grants ? 'shares' : 'grants', what)
    return false
  }

  /** How many streams a new HTTP/2 connection is offered, at most `most`. */
  streamsOffered(most: number): number {
    const pressure = (this.fullness - BEGINS.streams) / (BEGINS.shares - BEGINS.streams)
    if (pressure <= 0) return most
    const offered = Math.min(most, Math.max(FEWEST_STREAMS, Math.floor(most * (1 - pressure))))
    if (offered < most) this.#deps.onShed('streams', 'streams')
    return offered
  }

  /** A holder gave something up because of a stage, so it counts as shed. */
  gaveUp(stage: Stage, what: Shed): void {
    this.#deps.onShed(stage, what)
  }

  /** The grants were revoked: they give their clients no precedence any more. */
  grantsEnded(grants: ReadonlySet<string>): void {
    for (const client of this.#clients.values())
      if (client.grant !== undefined && grants.has(client.grant)) client.grant = undefined
    this.#remembered.forget(grants)
  }

  /** @param fullness by the memory of the process: 1 is the most that it may take */
  measured(fullness: number): void {
    this.#real = fullness
    this.#look()
  }

  close(): void {
    this.#looking?.cancel()
    forgetTurn(this.#soon)
    this.#lookAt = Number.POSITIVE_INFINITY
  }

  readonly #look = (): void => {
    this.#soon = undefined
    this.#settleStage()
    if (this.fullness >= BEGINS.answers) this.#giveUpUnread()
    if (this.fullness >= BEGINS.idle) this.#closeIdle()
    if (this.fullness >= RELIEF) this.#relieve()
    this.#settleStage()
  }

  #settleStage(): void {
    const { fullness } = this
    const stage = STAGES.findLast((each) => fullness >= BEGINS[each])
    // The next bound above the present fullness; past all of them, each further hundredth.
    const next = [...STAGES.map((each) => BEGINS[each]), RELIEF].filter((each) => each > fullness)
    this.#lookAt = this.limit * Math.min(...next, Math.max(this.total / this.limit, RELIEF) + 0.01)
    if (stage === this.stage) return
    this.stage = stage
    if (stage !== undefined) this.#looking ??= this.#deps.clock.every(LOOK, this.#look)
    else {
      this.#looking?.cancel()
      this.#looking = undefined
    }
    this.#deps.onStage(stage)
  }

  #giveUpUnread(): void {
    const now = this.#deps.clock.monotonic()
    for (const { holdings } of [...this.#clients.values()]) {
      for (const { holder } of [...holdings]) {
        for (let left = holder.giveUpUnread(now); left > 0; left -= 1) this.#deps.onShed('answers', 'answer')
      }
    }
  }

  /** Closes idle connections of proxies, too: a proxy opens another one when it needs it. */
  #closeIdle(): void {
    const now = this.#deps.clock.monotonic()
    const share = this.#shares(BEGINS.idle)
    const heaviest = [...this.#clients.values()].sort((a, b) => b.bytes - a.bytes)
    for (const client of heaviest) {
      const ofClient = client.grant === undefined ? share.withoutGrant : share.withGrant
      const most = client.isProxy ? 0 : ofClient
      for (const holding of [...client.holdings]) {
        const idleFor = this.#idleFor(holding, now)
        if (this.fullness < BEGINS.idle || client.bytes <= most) break
        if (idleFor >= PATIENCE) this.#drop(holding, 'idle')
      }
    }
    this.#idleLookAt = now
  }

  /** For how long (ms) the looks have found a holder without work. */
  #idleFor(holding: Holding, now: number): number {
    // If the last look was long ago, it may have worked since then.
    if (holding.holder.working || now - this.#idleLookAt > 10 * LOOK) holding.idleSince = undefined
    if (holding.holder.working) return 0
    holding.idleSince ??= now
    return now - holding.idleSince
  }

  /** Takes from the clients above the fair share, the one that holds most first: requests at the device last. */
  #relieve(): void {
    const enough = (BEGINS.shares * this.total) / this.fullness
    const share = this.#shares(BEGINS.shares)
    for (const client of this.#judged().sort((a, b) => b.bytes - a.bytes)) {
      if (this.total <= enough) return
      const most = client.grant === undefined ? share.withoutGrant : share.withGrant
      const largest = [...client.holdings].sort((a, b) => b.bytes - a.bytes)
      for (const busy of [false, true]) {
        for (const holding of largest) {
          if (this.total <= enough || client.bytes <= most) break
          if (holding.holder.atDevice === busy)
            this.#drop(holding, this.fullness < BEGINS.grants ? 'shares' : 'grants')
        }
      }
    }
    this.#shareUntil = Number.NEGATIVE_INFINITY
  }

  #drop(holding: Holding, stage: Stage): void {
    this.#deps.onShed(stage, 'connection')
    holding.holder.drop()
    // The rest of this look must see what it frees. The event that the connection has closed comes later.
    holding.close()
  }

  /** All clients but proxies. */
  #judged(): ClientAccount[] {
    return [...this.#clients.values()].filter(({ isProxy }) => !isProxy)
  }

  #shareOf({ grant }: ClientAccount): number {
    const now = this.#deps.clock.monotonic()
    if (now >= this.#shareUntil) {
      this.#share = this.#shares(BEGINS.shares)
      this.#shareUntil = now + SHARE_LASTS
    }
    return grant === undefined ? this.#share.withoutGrant : this.#share.withGrant
  }

  /** The fair shares if all clients together are to fill so much of the limit. */
  #shares(fullness: number): FairShare {
    const present = this.fullness
    // By the memory of the process, the same things may cost more than the account says.
    const whole = present === 0 ? this.limit : (fullness * this.total) / present
    const clients = this.#judged()
    const ofOthers = this.total - clients.reduce((sum, { bytes }) => sum + bytes, 0)
    return fairShare(clients, Math.max(0, whole - ofOthers), present >= BEGINS.grants)
  }
}
