import type { ClientMemory } from '../http/exchange.ts'
import { afterTurn, type Clock, forgetTurn, type Postponed, type Timer } from '../system/clock.ts'
import { TurnBudget } from '../system/turn-budget.ts'
import { type FairShare, fairShare } from './fair-share.ts'
import { RememberedGrants } from './remembered-grants.ts'

/** The kinds of memory that the account counts separately: the `of` label of `postern_memory_bytes`. */
const KINDS = ['connections', 'requests', 'bodies', 'responses', 'tunnels', 'hashes', 'page', 'log'] as const
type Kind = (typeof KINDS)[number]

/**
 * The stages of load shedding. A stage includes all earlier ones.
 *
 * - `streams`: a new HTTP/2 connection is offered fewer streams.
 * - `answers`: Postern gives up its own responses that their clients do not read.
 * - `idle`: idle connections of clients above the fair share close.
 * - `shares`: a client above the fair share gets no more memory; from `RELIEF` on, its connections close.
 * - `grants`: clients with a live grant get their share first. A client that holds nothing is still admitted, to log in.
 */
export const STAGES = ['streams', 'answers', 'idle', 'shares', 'grants'] as const
export type Stage = (typeof STAGES)[number]

/** The fullness at which each stage begins. */
const BEGINS: Readonly<Record<Stage, number>> = {
  streams: 0.65,
  answers: 0.7,
  idle: 0.75,
  shares: 0.8,
  grants: 0.95,
}

/** At this fullness the account closes connections of clients above the fair share, until the fullness is that of `shares` again. */
const RELIEF = 0.88

/** The things that the account refuses or gives up: the `what` label of `postern_shed_total`. */
const SHED = ['streams', 'answer', 'connection', 'stream', 'request', 'upload'] as const
export type Shed = (typeof SHED)[number]

/** How long (ms) an own response must be unread, or a connection idle, before the account may give it up. */
export const UNTOUCHED_FOR = 1_000

/** The fewest streams that an HTTP/2 connection is offered. */
const FEWEST_STREAMS = 8

/** The time (ms) between two checks of all holders while a stage is in effect. */
const INTERVAL = 250

/** How long (ms) a computed fair share is used. */
const SHARE_LASTS = 50

/** The smallest thing that the account can close: a connection, or one request that a trusted proxy carries. */
export interface Holder {
  /** A request is open. */
  readonly working: boolean
  /** One of its requests was sent to the device and has not ended. */
  readonly atDevice: boolean
  /** Gives up own responses that the client has not read for `UNTOUCHED_FOR`. Returns their number. */
  cutUnread(now: number): number
  /** Ends it at once. */
  cut(): void
}

/** The holder of a closed holding. */
const GONE: Holder = { working: false, atDevice: false, cutUnread: () => 0, cut() {} }

/** What one client holds: an IPv4 address, or the /64 prefix of an IPv6 address (C17). */
export class ClientAccount {
  readonly key: string
  bytes = 0
  readonly holdings: Set<Holding> = new Set()
  /** A trusted proxy carries requests of many clients. The account judges those clients, not the proxy. */
  readonly isProxy: boolean
  /** The grant that last admitted one of its requests. */
  grant: string | undefined
  /** Its budget of work in a turn of the event loop. */
  readonly turns: TurnBudget

  constructor(key: string, isProxy: boolean, grant: string | undefined, turns: TurnBudget) {
    this.key = key
    this.isProxy = isProxy
    this.grant = grant
    this.turns = turns
  }

  /** The budget for the TLS handshake and the reads of one connection. Each connection of a trusted proxy has its own budget. */
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

/** The bytes of one holder, by kind. A change costs a few additions, because each request makes several. */
export class Holding implements ClientMemory {
  readonly account: Account
  readonly client: ClientAccount
  holder: Holder
  bytes = 0
  /** The time of the first check that found the holder idle (ms); undefined while it works. */
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

  /** Charges for a request, which may be a tunnel soon. Returns whether its client may hold that much. */
  take(request: number, tunnel: number): boolean {
    const { account, client } = this
    const may = !account.isTight || account.mayHold(client, request + tunnel, 'request')
    this.add('requests', request)
    if (tunnel > 0) this.add('tunnels', tunnel)
    return may
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

  /** Gives all bytes back. Later changes have no effect. */
  close(): void {
    if (!this.#open) return
    for (const kind of KINDS) this.set(kind, 0)
    this.#open = false
    // An exchange may outlive its connection, and must not keep the connection in memory.
    this.holder = GONE
    this.account.forget(this)
  }
}

interface AccountDependencies {
  /** The most that all clients together may hold (bytes). */
  readonly limit: number
  readonly clock: Pick<Clock, 'monotonic' | 'every'>
  /** Called when another stage is in effect; undefined: none. */
  readonly onStage: (stage: Stage | undefined) => void
  readonly onShed: (stage: Stage, what: Shed) => void
}

/**
 * The account of the memory that clients make the process hold (C26): the total, and the bytes of each client. As it fills, it sheds
 * load in stages. The client that holds most loses first; a client below the fair share loses nothing but own responses that it does not
 * read.
 */
export class Account {
  limit: number
  readonly sums: Sums = nothing()
  /** The bytes of all clients and of the kinds that no client is charged for. */
  total = 0
  stage: Stage | undefined = undefined
  /** A stage is in effect, or the next check may find one. Otherwise every client may hold what it asks for. */
  isTight = false
  readonly #deps: AccountDependencies
  readonly #clients = new Map<string, ClientAccount>()
  /**
   * The turn budgets of clients that gave back their last bytes in this turn of the event loop. The next request of a client behind a
   * trusted proxy often comes in the same turn, and must find the budget used up.
   */
  readonly #turns = new Map<string, TurnBudget>()
  /** The grants of clients that hold nothing. */
  readonly #remembered: RememberedGrants
  /** The fullness by the measured memory of the process. */
  #real = 0
  /** A check is due when `total` reaches this (bytes). */
  #checkAt: number
  #timer: Timer | undefined
  #checkSoon: Postponed | undefined
  #idleCheckedAt = Number.NEGATIVE_INFINITY
  #share: FairShare = { withGrant: 0, withoutGrant: 0 }
  #shareUntil = Number.NEGATIVE_INFINITY

  constructor(deps: AccountDependencies) {
    this.#deps = deps
    this.limit = deps.limit
    this.#remembered = new RememberedGrants(deps.clock)
    this.#checkAt = BEGINS.streams * this.limit
  }

  /** The fullness of the account, or of the memory of the process if that is fuller: 1 is the limit. */
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
    // Two connections may each have got a new account for the same client before the first one opened a holding.
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

  /** Adds bytes to the sums of the process, not to a client. */
  add(kind: Kind, change: number): void {
    this.sums[kind] += change
    this.total += change
    if (this.total < this.#checkAt || change <= 0) return
    this.isTight = true
    this.#checkSoon ??= afterTurn(this.#check)
  }

  /** Sets the total bytes of a kind that no client is charged for. */
  set(kind: Kind, bytes: number): void {
    this.add(kind, bytes - this.sums[kind])
  }

  /** Whether a client may hold `bytes` more. If not, `what` counts as shed. */
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

  /** Counts as shed what a holder gave up by itself because of a stage. */
  gaveUp(stage: Stage, what: Shed): void {
    this.#deps.onShed(stage, what)
  }

  /** Call this when grants have ended. Their clients lose the precedence of a grant. */
  grantsEnded(grants: ReadonlySet<string>): void {
    for (const client of this.#clients.values())
      if (client.grant !== undefined && grants.has(client.grant)) client.grant = undefined
    this.#remembered.forget(grants)
  }

  /** Sets another limit (bytes). */
  setLimit(limit: number): void {
    this.limit = limit
    this.#check()
  }

  /** Sets the fullness by the measured memory of the process: 1 is its limit. */
  measured(fullness: number): void {
    this.#real = fullness
    this.#check()
  }

  close(): void {
    this.#timer?.cancel()
    forgetTurn(this.#checkSoon)
    this.#checkAt = Number.POSITIVE_INFINITY
  }

  readonly #check = (): void => {
    this.#checkSoon = undefined
    this.#settleStage()
    if (this.fullness >= BEGINS.answers) this.#cutUnread()
    if (this.fullness >= BEGINS.idle) this.#closeIdle()
    if (this.fullness >= RELIEF) this.#relieve()
    this.#settleStage()
  }

  #settleStage(): void {
    const { fullness } = this
    const stage = STAGES.findLast((each) => fullness >= BEGINS[each])
    // The next check is due at the next bound above the present fullness; past the last bound, at each further hundredth.
    const next = [...STAGES.map((each) => BEGINS[each]), RELIEF].filter((each) => each > fullness)
    this.#checkAt = this.limit * Math.min(...next, Math.max(this.total / this.limit, RELIEF) + 0.01)
    this.isTight = stage !== undefined || this.total >= this.#checkAt
    if (stage === this.stage) return
    this.stage = stage
    if (stage !== undefined) this.#timer ??= this.#deps.clock.every(INTERVAL, this.#check)
    else {
      this.#timer?.cancel()
      this.#timer = undefined
    }
    this.#deps.onStage(stage)
  }

  #cutUnread(): void {
    const now = this.#deps.clock.monotonic()
    for (const { holdings } of [...this.#clients.values()]) {
      for (const { holder } of [...holdings]) {
        for (let left = holder.cutUnread(now); left > 0; left -= 1) this.#deps.onShed('answers', 'answer')
      }
    }
  }

  /** Also closes idle connections of proxies, below any share: a proxy opens another one when it needs it. */
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
        if (idleFor >= UNTOUCHED_FOR) this.#cut(holding, 'idle')
      }
    }
    this.#idleCheckedAt = now
  }

  /** For how long (ms) all checks have found a holder idle. */
  #idleFor(holding: Holding, now: number): number {
    // If the last check was long ago, the holder may have worked in between.
    if (holding.holder.working || now - this.#idleCheckedAt > 10 * INTERVAL) holding.idleSince = undefined
    if (holding.holder.working) return 0
    holding.idleSince ??= now
    return now - holding.idleSince
  }

  /** Closes connections of clients above the fair share: the client that holds most first, requests at the device last. */
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
            this.#cut(holding, this.fullness < BEGINS.grants ? 'shares' : 'grants')
        }
      }
    }
    this.#shareUntil = Number.NEGATIVE_INFINITY
  }

  #cut(holding: Holding, stage: Stage): void {
    this.#deps.onShed(stage, 'connection')
    holding.holder.cut()
    // The rest of this check must see the freed bytes; the `close` event of the connection comes later.
    holding.close()
  }

  /** All clients except proxies. */
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

  /** The fair shares at which all clients together would fill this part of the limit. */
  #shares(fullness: number): FairShare {
    const present = this.fullness
    // If the measured memory is fuller than the account, the charges are too low, so the shares shrink by the same factor.
    const whole = present === 0 ? this.limit : (fullness * this.total) / present
    const clients = this.#judged()
    const ofOthers = this.total - clients.reduce((sum, { bytes }) => sum + bytes, 0)
    return fairShare(clients, Math.max(0, whole - ofOthers), present >= BEGINS.grants)
  }
}
