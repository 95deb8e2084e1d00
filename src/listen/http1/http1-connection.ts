import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Exchange, UpgradeExchange } from '../../http/exchange.ts'
import type { Refusal } from '../../http/refusal.ts'
import type { ConnectionFacts, Http1RequestHead } from '../../http1/request-head.ts'
import { type Holder, type Holding, UNTOUCHED_FOR } from '../../memory/account.ts'
import { TUNNEL } from '../../memory/costs.ts'
import { Activity } from '../../system/activity.ts'
import { afterTurn, type Clock, type Timer } from '../../system/clock.ts'
import type { IdleList, Idling } from '../../system/idle-list.ts'
import { PIECE_WORK, READ_WORK, type TurnBudget } from '../../system/turn-budget.ts'
import { accountOf, type ListenMemory } from '../connection-caps.ts'
import { endBroken, type Lingering } from '../linger.ts'
import type { RequestBody } from '../request-body.ts'
import { serveInTurn } from '../turn.ts'
import { Http1Exchange, type Http1Transport } from './http1-exchange.ts'
import { Http1Intake, type IntakeEvents, MALFORMED } from './intake.ts'
import { Http1UpgradeExchange } from './upgrade.ts'

export interface Http1Handlers {
  readonly onExchange: (exchange: Exchange) => void
  readonly onUpgrade: (exchange: UpgradeExchange) => void
  /** The complete HTTP/1 response for bytes that are not a valid request (C20). Called once per response. */
  readonly refusalMessage: (refusal: Refusal) => string
  /** Called with an unexpected error. Only the connection on which it occurred is closed. */
  readonly onBug: (error: unknown) => void
}

/** The facts that all connections of a server share. Times in ms, sizes in bytes. */
export interface ConnectionRules {
  readonly clock: Pick<Clock, 'monotonic' | 'after' | 'every'>
  readonly headerTimeout: number
  /** The list that ends idle connections, and the stricter list for those whose client has closed its sending side over TLS. */
  readonly idle: IdleList
  readonly ended: IdleList
  readonly maxHeaderSize: number
  readonly handlers: Http1Handlers
  readonly lingering: Pick<Lingering, 'end'>
  readonly memory: ListenMemory
  /** The connections are those of `listen.redirect`. */
  readonly redirects: boolean
  readonly keepAliveFields: string
  readonly dateLine: () => string
  /** The sidecar stops: only requests that are already in flight are served. */
  draining: boolean
}

/** From this many chunks on, a read is charged for its chunks in addition to its bytes. */
const MANY_CHUNKS = 64

/** How long (ms) a request may still arrive on an idle connection after the sidecar begins to stop. */
export const LAST_REQUEST = 500

/** How long (ms) the rest of an unread body is drained to keep the connection. */
const DRAIN_TIMEOUT = 5_000

/** One HTTP/1 connection. It serves its requests one after the other. */
export class Http1Connection implements Http1Transport, IntakeEvents, Holder, Idling {
  readonly socket: Socket
  readonly wire: Socket
  readonly rules: ConnectionRules
  readonly #intake: Http1Intake
  readonly #peer: string
  readonly #activity: Activity
  /** The memory of the connection. */
  readonly #holding: Holding
  /** The budget for reading its bytes. */
  readonly #turns: TurnBudget
  /** The holding that the current request is charged to: `#holding`, or that of the client behind a trusted proxy. */
  #ofRequest: Holding
  /** The charge of the current request (bytes). */
  #charged = 0
  /** When `cutUnread` first found an own response with unread bytes (ms); undefined if the last call found none. */
  #unreadSince: number | undefined
  #current: Http1Exchange | undefined
  /** `half-closed`: the client has closed its sending side. `closing`: later bytes on the connection are not read as a request. */
  #state: 'open' | 'half-closed' | 'closing' = 'open'
  /** Runs while the connection waits for a head or drains an unread body. */
  #deadline: Timer | undefined
  /** The deadline for a head has passed while received bytes, which may complete it, wait for a later turn. */
  #late = false
  /** The client has closed its sending side while received bytes wait for a later turn. */
  #endWaits = false

  constructor(socket: Socket, wire: Socket, rules: ConnectionRules, holding: Holding) {
    this.socket = socket
    this.wire = wire
    this.rules = rules
    this.#holding = holding
    this.#ofRequest = holding
    this.#turns = holding.client.turnsOfConnection()
    holding.holder = this
    const facts: ConnectionFacts = {
      secure: (socket as Partial<TLSSocket>).encrypted === true,
      peer: wire.remoteAddress ?? '',
      localPort: wire.localPort ?? 0,
      redirects: rules.redirects,
    }
    this.#peer = facts.peer
    this.#intake = new Http1Intake(socket, facts, rules, this)
    this.#activity = new Activity(socket, rules.clock.monotonic())
    rules.idle.join(this)
    socket.on('data', this.#onData)
    socket.once('end', this.#onEnd)
    socket.on('drain', this.#onDrain)
    // Without a listener the error would end the process. The `close` event ends the exchange; the cause is not needed.
    socket.on('error', () => {})
    socket.once('close', this.#onClose)
    this.awaitHead()
  }

  get working(): boolean {
    return this.#current !== undefined
  }

  get atDevice(): boolean {
    const exchange = this.#current
    return exchange !== undefined && exchange.sentAt > 0 && !exchange.ended
  }

  cutUnread(now: number): number {
    const exchange = this.#current
    const waits = exchange?.answered === true && exchange.sentAt === 0 && this.socket.writableLength > 0
    if (!waits) this.#unreadSince = undefined
    else this.#unreadSince ??= now
    if (this.#unreadSince === undefined || now - this.#unreadSince < UNTOUCHED_FOR) return 0
    this.cut()
    return 1
  }

  cut(): void {
    this.socket.destroy()
  }

  waits(change: number): void {
    this.#holding.hold(change)
  }

  readonly stalled = (bytes: number): void => {
    this.#activity.look(this.rules.clock.monotonic())
    this.#holding.set('responses', bytes)
  }

  keepsHead(bytes: number): void {
    this.#holding.add('connections', bytes)
  }

  get mayBegin(): boolean {
    return this.#current === undefined && this.#state !== 'closing'
  }

  /** The sidecar begins to stop: the connection closes after the pending response, or soon if it is idle; a tunnel closes. */
  serverStopping(): void {
    this.#current?.serverStopping()
    this.#closeIdleSoon()
  }

  #closeIdleSoon(): void {
    const last = this.rules.clock.after(LAST_REQUEST, () => {
      // Closes the connection if no byte of a next request has arrived. Empty lines before a request do not count.
      const { withinHead, withinBody, deferred } = this.#intake
      if (this.mayBegin && !withinHead && !withinBody && !deferred) this.socket.destroy()
    })
    this.socket.once('close', () => last.cancel())
  }

  readonly onFlushed = (error?: Error | null): void => {
    const exchange = this.#current
    // If the write failed, the `close` event ends the exchange.
    if (exchange === undefined || exchange.ended || error instanceof Error) return
    try {
      exchange.settle('complete')
      this.#served(exchange)
    } catch (bug) {
      this.#fail(bug)
    }
  }

  mayRead(bytes: number): boolean {
    if (this.#turns.take(READ_WORK + bytes)) return true
    this.#turns.wait(this.#readOn)
    return false
  }

  mayTakeMore(count: number): boolean {
    // The charge for the read covers a few chunks.
    if (count < MANY_CHUNKS) return true
    this.#turns.spend(PIECE_WORK * count)
    if (this.#turns.take(0)) return true
    this.#turns.wait(this.#readOn)
    return false
  }

  readonly #readOn = (): void => {
    if (this.socket.destroyed || this.#state === 'closing') return
    this.#turns.spend(READ_WORK + this.#holding.held('bodies'))
    try {
      this.#intake.readOn()
      if (this.#late) this.#onLateHead()
      if (this.#endWaits) this.#onEnd()
    } catch (bug) {
      this.#fail(bug)
    }
  }

  awaitHead(): void {
    this.#deadline ??= this.rules.clock.after(this.rules.headerTimeout, this.#onLateHead)
  }

  begin(head: Http1RequestHead, body: RequestBody | undefined, cost: number): void {
    if (this.#deadline !== undefined) this.#stopDeadline()
    const { handlers } = this.rules
    if (head.leavesHttp) {
      const exchange = this.#serve(this.#upgradeOf(head), cost)
      // The next bytes may belong to another protocol.
      this.#state = 'closing'
      serveInTurn(this.#ofRequest.client.turns, exchange, handlers.onUpgrade, handlers.onBug)
    } else {
      const exchange = this.#serve(new Http1Exchange(this, head, body), cost)
      // The bytes that came with the head are charged only here: when they were pushed, the client was not known.
      const holding = this.#ofRequest
      body?.charge((change) => holding.hold(change))
      serveInTurn(holding.client.turns, exchange, handlers.onExchange, handlers.onBug)
    }
  }

  bodyRead(): void {
    if (this.#current === undefined && this.#deadline !== undefined) this.#stopDeadline()
  }

  bodyBroken(): void {
    const exchange = this.#current
    this.#state = 'closing'
    if (exchange === undefined) this.linger()
    // A response in flight is completed first; then the connection closes.
    else if (!exchange.answered) exchange.breakBody()
  }

  refuse(refusal: Refusal): void {
    if (this.socket.writable) this.#endInSteps(this.rules.handlers.refusalMessage(refusal))
    else {
      this.#close()
      this.socket.destroy()
    }
  }

  readonly #onData = (chunk: Buffer): void => {
    try {
      this.#intake.receive(chunk)
      // During a request the activity is noted when the response is sent: see `#served`.
      if (this.#current === undefined) this.#activity.note(this.rules.clock.monotonic())
      if (this.#state === 'half-closed') this.#finishIfDone()
    } catch (bug) {
      this.#fail(bug)
    }
  }

  readonly #onEnd = (): void => {
    this.#endWaits = this.#intake.deferred
    if (this.#endWaits) return
    if (this.#state === 'open') this.#state = 'half-closed'
    const { socket, wire, rules } = this
    if (socket !== wire) {
      this.#activity.note(rules.clock.monotonic())
      this.#unwatch()
      rules.ended.join(this)
    }
    try {
      this.#current?.halfClosed()
      this.#finishIfDone()
    } catch (bug) {
      this.#fail(bug)
    }
  }

  readonly #onDrain = (): void => {
    this.#activity.note(this.rules.clock.monotonic())
    this.#holding.set('responses', 0)
    this.#current?.drained()
  }

  lastActive(now: number): number {
    // A silent connection that waits for the device is not idle: the device's deadlines bound that wait. A client that does not read its
    // queued bytes is idle.
    if (this.#current !== undefined && this.socket.writableLength === 0) this.#activity.note(now)
    return this.#activity.look(now)
  }

  onIdle(): void {
    if (this.socket.writableLength > 0) endBroken(this.socket, this.wire)
    else this.socket.destroy()
  }

  #unwatch(): void {
    this.rules.idle.leave(this)
    this.rules.ended.leave(this)
  }

  readonly #onClose = (): void => {
    this.#unwatch()
    this.#close()
    this.#current?.clientGone()
    this.#release()
  }

  readonly #onLateHead = (): void => {
    // The deadline is judged when the received bytes are read: the client is not late because its turn is.
    if (this.#intake.deferred) this.#late = true
    else if (this.#intake.withinHead) this.refuse({ kind: 'request-timeout' })
    else this.socket.destroy()
  }

  /** Reports a bug and closes this connection only: an uncaught error would end the process. */
  #fail(bug: unknown): void {
    this.rules.handlers.onBug(bug)
    this.socket.destroy()
  }

  /** Begins a request, and charges its client. If the client holds too much, the gate refuses the request: see `overMemory`. */
  #serve<E extends Http1Exchange>(exchange: E, cost: number): E {
    this.#current = exchange
    if (this.rules.draining) exchange.afterwards = 'closes'
    // Postponed by a turn, because the body of a pipelined request is not read yet.
    if (this.#state === 'half-closed') {
      afterTurn(() => {
        if (this.#intake.deferred) this.#endWaits = true
        else exchange.halfClosed()
      })
    }
    if (this.#holding.client.isProxy) this.#ofRequest = this.#holdingBehind(exchange)
    const holding = this.#ofRequest
    this.#charged = cost
    exchange.memory = holding
    // A tunnel is charged from its request on, because early bytes of the client are buffered.
    exchange.overMemory = !holding.take(cost, exchange.head.upgrade ? TUNNEL : 0)
    return exchange
  }

  /** Opens the holding for a request that a trusted proxy carries. It belongs to the client that the proxy names. */
  #holdingBehind({ head }: Http1Exchange): Holding {
    const { memory } = this.rules
    return memory.account.open(accountOf(memory, this.#peer, head.survey.forwardedFor), this)
  }

  /** Gives back the charge of the request. */
  #release(): void {
    const holding = this.#ofRequest
    if (holding === this.#holding) {
      holding.add('requests', -this.#charged)
      this.#charged = 0
    } else {
      holding.close()
      this.#ofRequest = this.#holding
    }
  }

  #upgradeOf(head: Http1RequestHead): Http1UpgradeExchange {
    const { socket } = this
    const early = this.#intake.stop()
    socket.off('data', this.#onData)
    socket.pause()
    return new Http1UpgradeExchange(this, head, early, () => {
      socket.off('end', this.#onEnd)
      socket.off('drain', this.#onDrain)
      this.#unwatch()
    })
  }

  /** Call this when the response is sent: closes the connection, or continues with the next request. */
  #served(exchange: Http1Exchange): void {
    this.#current = undefined
    this.#activity.told = exchange.start + exchange.duration
    this.#release()
    if (exchange.afterwards === 'stays' && this.#state !== 'closing') {
      // A response that was begun before the stop has announced that the connection stays open.
      if (this.rules.draining) this.#closeIdleSoon()
      if (this.#intake.withinBody) this.#deadline = this.rules.clock.after(DRAIN_TIMEOUT, this.linger)
      this.#intake.proceed()
      if (this.#state === 'half-closed') this.#finishIfDone()
    } else this.linger()
  }

  readonly linger = (): void => this.#endInSteps('')

  /** Sends the last bytes and closes the connection in steps. From now on `lingering` bounds its silence. */
  #endInSteps(lastBytes: string): void {
    this.#close()
    this.#unwatch()
    this.rules.lingering.end(this.socket, lastBytes, this.wire)
  }

  /** The client has closed its sending side. Closes the sidecar's side when every request is served. */
  #finishIfDone(): void {
    if (!this.mayBegin) return
    // The bytes that wait for a turn may be a request.
    if (this.#intake.deferred) this.#endWaits = true
    else if (this.#intake.withinHead) this.refuse(MALFORMED)
    else {
      this.#close()
      this.socket.end()
    }
  }

  #close(): void {
    this.#state = 'closing'
    this.#intake.stop()
    this.#stopDeadline()
  }

  #stopDeadline(): void {
    this.#deadline?.cancel()
    this.#deadline = undefined
    this.#late = false
  }
}
