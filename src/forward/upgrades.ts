import { Agent, type ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { createProxyServer } from 'http-proxy-3'
import { DeviceFault } from '../device/failure.ts'
import type { DeviceHead } from '../device/request.ts'
import type { UpgradeExchange } from '../http/exchange.ts'
import { type Fields, fieldLines, fieldValues, groupFields } from '../http/fields.ts'
import { limitFields } from '../http/limit-fields.ts'
import { Activity } from '../system/activity.ts'
import type { IdleList, Idling } from '../system/idle-list.ts'
import type { ForwardExchange } from './forward-exchange.ts'
import { responseHead } from './response-fields.ts'
import { RoundTrip } from './round-trip.ts'
import type { RoundTripEnd, RoundTripService, Substitutes } from './round-trip-service.ts'
import type { HoldingClient } from './signed-in-request.ts'
import { TunnelEnd } from './tunnel-end.ts'

/** What only an upgrade needs. */
interface UpgradeRules extends Substitutes {
  /** The client, with the sidecar's own login at the device. */
  readonly client?: HoldingClient
  readonly onTunnel: () => void
  /** Watches for tunnels that carry no byte in either direction. */
  readonly idle: IdleList
}

const SWITCH: Fields = ['Connection', 'Upgrade', 'Upgrade', 'websocket']

/** What `http-proxy-3` reads of an accepted handshake. The fields of the device's 101 are set behind it. */
const ACCEPTED: Buffer = Buffer.from(`HTTP/1.1 101 Switching Protocols\r\n${fieldLines(SWITCH)}\r\n`)

/** Sends an upgrade to the device. */
export function sendUpgrade(
  service: RoundTripService,
  exchange: ForwardExchange<UpgradeExchange>,
  rules: UpgradeRules,
  onEnd: (end: RoundTripEnd) => void,
): void {
  if (exchange.answered) onEnd({ kind: 'abandoned' })
  else new UpgradeTrip(service, exchange, onEnd, rules).attempt()
}

/** A WebSocket handshake at the device. It ends with the tunnel, or like any other request if the device does not switch protocols. */
class UpgradeTrip extends RoundTrip<ForwardExchange<UpgradeExchange>, UpgradeRules> implements Idling {
  #handshake: Handshake | undefined
  /** The activity of the client's connection, once there is a tunnel. All data of both directions passes that connection. */
  #activity: Activity | undefined

  /** The client's connection. The cast holds because only HTTP/1 has upgrades, and its connections are sockets. */
  get #socket(): Socket {
    return this.exchange.connection as Socket
  }

  /** Drops an interim response: a client that waits for its tunnel has no use for it. */
  override inform(): void {}

  transmit(device: Socket, host: string): void {
    // An earlier connection broke without a response.
    this.#handshake?.cut()
    const { target, fields: sent } = this.outgoing
    const isNamed = fieldValues(sent, 'host').length > 0
    const fields = [...(isNamed ? [] : ['Host', host]), ...sent, ...SWITCH]
    this.#handshake = new Handshake(this.#socket, device, target, fields, this.#onPiece)
  }

  /** Connects client and device. `rest`: the bytes that the device sent behind its 101. */
  switched({ status, reason, fields }: DeviceHead, _device: Socket, rest: Buffer): void {
    const exchange = this.exchange
    const handshake = this.#handshake
    // The client has got a 401 if its grant was revoked meanwhile.
    const refused = handshake === undefined || exchange.answered
    // RFC 9110 §7.8: the device may switch only to what was requested.
    if (refused || fieldValues(fields, 'upgrade').join().toLowerCase() !== 'websocket') {
      this.loan?.connection.abort(new DeviceFault('http_upgrade_failed'))
      return
    }
    exchange.deviceStatus = status
    exchange.headAt = this.service.clock.monotonic()
    exchange.streamAt = exchange.headAt
    const seen = { status, reason, fields, remembered: false }
    const projected = responseHead(seen, exchange, this.service.fields.response)
    const deviceFields = this.substitutes.client?.observe(projected) ?? projected.fields
    const client = this.#socket
    const early = exchange.tunnelled()
    this.#activity = new Activity(client, exchange.headAt)
    client.on('data', this.#onData)
    this.substitutes.idle.join(this)
    const head = [...SWITCH, ...deviceFields, ...limitFields(exchange)]
    handshake.accept(head, early, rest, this.substitutes.onTunnel)
    exchange.onEnd(() => this.finish({ kind: 'relayed' }))
  }

  readonly #onData = (): void => this.#activity?.note(this.service.clock.monotonic())
  readonly #onPiece = (): void => void this.#activity?.look(this.service.clock.monotonic())

  lastActive(now: number): number {
    return this.#activity?.look(now) ?? now
  }

  onIdle(): void {
    this.exchange.idle = true
    this.exchange.cut()
  }

  protected override finish(end: RoundTripEnd): void {
    this.substitutes.idle.leave(this)
    this.#handshake?.cut()
    super.finish(end)
  }
}

/** Sends a request of `http-proxy-3` over a connection that is already open. */
class OpenConnection extends Agent {
  readonly #end: TunnelEnd

  constructor(end: TunnelEnd) {
    super()
    this.#end = end
  }

  override createConnection(): TunnelEnd {
    return this.#end
  }
}

/**
 * A handshake that `http-proxy-3` carries: it writes the request, reads the 101, answers the client and pipes both ways. It gets two
 * `TunnelEnd`s in place of sockets. So it reads only a 101 that our own rules have accepted, and until then nothing that it does reaches
 * the client. The sockets themselves would break C23 and C24 (`passes/ws-incoming.js` of version 2.0.1):
 *
 * - Its listener for `response` writes the device's refusal to the client, behind the response that our own rules have written.
 * - `onOutgoingError` closes the client when the device's connection fails. The client gets no response, and the handshake no second
 * attempt.
 * - Node's parser closes the device's connection at a response that the tolerant rules accept.
 * - `socket.unshift` loses what a client sent before it closed its sending side: Node takes no bytes back after the end of a stream.
 */
class Handshake {
  readonly #client: TunnelEnd
  readonly #device: TunnelEnd
  readonly #proxy = createProxyServer()
  #head: Fields = []

  /** @param onPiece called when a piece for the client is written, and when the kernel has taken it */
  constructor(client: Socket, device: Socket, target: string, fields: Fields, onPiece: () => void) {
    this.#client = new TunnelEnd(client, 'drops', onPiece)
    this.#device = new TunnelEnd(device, 'sends')
    this.#proxy.on('error', () => {})
    this.#proxy.once('proxyReqWs', (request) => this.#setHead(request, target, fields))
    // The package demands these of a request of Node's server, which did not read this one (`http1/`). The target is set later, because the
    // package cannot parse every one, such as `/\`.
    const asked = Object.assign(new IncomingMessage(client), {
      method: 'GET',
      url: '/',
      headers: { upgrade: 'websocket' },
    })
    const agent = new OpenConnection(this.#device)
    this.#proxy.ws(asked, this.#client, Buffer.alloc(0), { target: { host: 'device', port: 80 }, agent })
  }

  /** Sets target and fields of the request. The package takes fields as an object, which loses their order, letter case and repeats. */
  #setHead(request: ClientRequest, target: string, fields: Fields): void {
    for (const name of request.getHeaderNames()) request.removeHeader(name)
    for (let i = 0; i + 1 < fields.length; i += 2) request.appendHeader(fields[i] ?? '', fields[i + 1] ?? '')
    request.path = target
    request.prependOnceListener('upgrade', (response) => {
      response.headers = groupFields(this.#head, 'kept')
    })
  }

  /**
   * The device has switched. `head`: the fields of the 101 for the client. `early`: what the client sent behind its handshake. `rest`:
   * what the device sent behind its 101.
   */
  accept(head: Fields, early: Buffer, rest: Buffer, onOpen: () => void): void {
    this.#head = head
    this.#proxy.once('open', onOpen)
    // Once the device has closed, unread data from the client would hide that the client left.
    this.#device.once('close', () => this.#client.destroySoon())
    this.#client.join(early)
    this.#device.join(ACCEPTED, rest)
  }

  /** Ends the handshake. Before `accept`, neither socket is affected. */
  cut(): void {
    this.#device.destroy()
    this.#client.destroy()
  }
}
