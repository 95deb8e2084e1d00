import { Agent, type ClientRequest, type IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { createProxyServer } from 'http-proxy-3'
import { DeviceFault } from '../device/failure.ts'
import type { DeviceHead } from '../device/request.ts'
import type { Forward, UpgradeExchange } from '../http/exchange.ts'
import { type Fields, fieldValues, groupFields } from '../http/fields.ts'
import { limitFields } from '../http/limit-fields.ts'
import { responseHead } from './response-fields.ts'
import { RoundTrip } from './round-trip.ts'
import type { Detour, RoundTripEnd, RoundTripService } from './round-trip-service.ts'
import type { HoldingClient } from './signed-in-request.ts'

/** What an upgrade does in its own way. */
interface UpgradeRules extends Detour {
  /** The client, with the sidecar's own login at the device. */
  readonly client?: HoldingClient
  readonly onTunnel: () => void
  /** How long a tunnel may carry no byte in either direction (ms). */
  readonly idleTimeout: number
}

const SWITCH = { Connection: 'Upgrade', Upgrade: 'websocket' }

/** Sends an upgrade to the device. */
export function sendUpgrade(
  service: RoundTripService,
  request: Forward<UpgradeExchange>,
  rules: UpgradeRules,
  onEnd: (end: RoundTripEnd) => void,
): void {
  if (request.answered) onEnd({ kind: 'abandoned' })
  else new UpgradeTrip(service, request, onEnd, rules).attempt()
}

/** A WebSocket handshake at the device. It ends with the tunnel, or like any other request if the device does not switch protocols. */
class UpgradeTrip extends RoundTrip<Forward<UpgradeExchange>, UpgradeRules> {
  override readonly upgrade = true

  /** Dropped: a client that waits for its tunnel has no use for it. */
  override inform(): void {}

  switched({ status, reason, fields }: DeviceHead, device: Socket, rest: Buffer<ArrayBuffer>): void {
    const exchange = this.request
    // When its grant is revoked meanwhile, the client gets a 401.
    const refused = exchange.answered
    // RFC 9110 §7.8: the device may switch only to what was requested.
    if (refused || fieldValues(fields, 'upgrade').join().toLowerCase() !== 'websocket') {
      this.connection?.abort(new DeviceFault('http_upgrade_failed'))
      return
    }
    exchange.deviceStatus = status
    exchange.headAt = this.service.clock.monotonic()
    exchange.streamAt = exchange.headAt
    const seen = { status, reason, fields, remembered: false }
    const projected = responseHead(seen, exchange, this.service.fields.response)
    this.#open(this.detour.client?.observe(projected) ?? projected.fields, device, rest)
    this.detour.onTunnel()
    exchange.onEnd(() => this.finish({ kind: 'relayed' }))
  }

  /** Connects client and device. `rest`: the bytes of the device behind its 101. */
  #open(fields: Fields, device: Socket, rest: Buffer<ArrayBuffer>): void {
    const exchange = this.request
    const client = exchange.connection as Socket
    const sent = exchange.tunnelled()
    relay(client, device, rest, { ...SWITCH, ...groupFields([...fields, ...limitFields(exchange)], 'kept') })
    // All data of the tunnel, in both directions, passes the client's connection.
    client.setTimeout(this.detour.idleTimeout, () => client.destroy())
    // When the device has closed, the client's data is discarded. Unread data would hide that the client left.
    device.once('close', () => client.end(() => client.destroySoon()))
    if (sent.length > 0) device.write(sent)
  }
}

/**
 * Has `http-proxy-3` send the 101 and pipe both ways. It passes on the end of each side: a half-closed client still gets the last bytes.
 * The handshake is over, read by our own rules, so the library's own request is dropped before it is sent: only its listener is used.
 */
function relay(
  client: Socket,
  device: Socket,
  rest: Buffer<ArrayBuffer>,
  headers: IncomingHttpHeaders,
): void {
  const handshake = new IncomingMessage(client)
  Object.assign(handshake, { method: 'GET', url: '/', httpVersion: '1.1', headers: { upgrade: 'websocket' } })
  const agent = Object.assign(new Agent({ keepAlive: false }), { createConnection: () => new Socket() })
  const proxy = createProxyServer()
  // It also emits the errors of the client's connection, which has its own listeners. Without a listener here they would end the
  // process.
  proxy.on('error', () => {})
  let request: ClientRequest | undefined
  proxy.once('proxyReqWs', (outgoing) => {
    request = outgoing
  })
  proxy.ws(handshake, client, Buffer.alloc(0), { target: { host: 'device', port: 80 }, agent }, () => {})
  const [onUpgrade] = request?.listeners('upgrade') ?? []
  request
    ?.removeAllListeners()
    .on('error', () => {})
    .destroy()
  onUpgrade?.(Object.assign(handshake, { headers }), device, rest)
}
