import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

type Parser = 'strict' | 'auto' | 'tolerant'

const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\n'

interface Attempt {
  readonly sidecar: TestSidecar
  readonly client: RawPeer
}

/** Asks a device for a WebSocket, which answers with these bytes, one packet each, and then echoes what it gets. */
async function attempt(packets: readonly string[], parser: Parser): Promise<Attempt> {
  const device = await startRawDevice(async (peer) => {
    await peer.waitFor('\r\n\r\n')
    for (const packet of packets) {
      peer.write(packet)
      await nextTurn()
    }
    peer.socket.pipe(peer.socket)
  })
  const sidecar = await startSidecar({ device, config: { upstream: { parser } } })
  const client = await rawConnection(sidecar.url)
  client.write(
    `GET /ws HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${await sidecar.token()}\r\n${UPGRADE}Sec-WebSocket-Version: 13\r\n\r\n`,
  )
  return { sidecar, client }
}

/** The head that the client gets, without the fields of the sidecar. */
function headOf(received: string): string[] {
  const [head = ''] = received.split('\r\n\r\n')
  return head.split('\r\n').filter((line) => !/^(?:x-ratelimit-|x-request-id)/i.test(line))
}

const MALFORMED: readonly (readonly [name: string, response: string, fields: readonly string[]])[] = [
  ['bare LF', `${SWITCHING}${UPGRADE}X-A: 1\r\n\r\n`.replaceAll('\r', ''), ['X-A: 1']],
  ['a folded field', `${SWITCHING}${UPGRADE}X-A: 1,\r\n 2\r\n\r\n`, ['X-A: 1, 2']],
  ['a blank before a colon', `${SWITCHING}${UPGRADE}X-A : 1\r\n\r\n`, ['X-A: 1']],
  ['a line that is no field', `${SWITCHING}${UPGRADE}welcome\r\nX-A: 1\r\n\r\n`, ['X-A: 1']],
  ['a control character', `${SWITCHING}${UPGRADE}X-A: 1\x012\r\n\r\n`, ['X-A: 1 2']],
  ['HTTP/2.0 in its first line', `HTTP/2.0 101 Switching Protocols\r\n${UPGRADE}\r\n`, []],
  ['a status line in lower case', `http/1.1 101 ok\r\n${UPGRADE}\r\n`, []],
]

describe('The response of the device to a handshake', () => {
  it.each(
    MALFORMED.flatMap(([name, response, fields]) => [
      { name, fields, split: 'in one packet', packets: [response], parser: 'tolerant' as const },
      { name, fields, split: 'in many packets', packets: [...response], parser: 'auto' as const },
    ]),
  )('H65 with $name, $split, opens a tunnel ($parser)', async ({ packets, parser, fields }) => {
    const { client, sidecar } = await attempt(packets, parser)
    client.write('frames')
    await client.waitFor('frames')
    expect(headOf(client.received)).toEqual([
      'HTTP/1.1 101 Switching Protocols',
      'Connection: Upgrade',
      'Upgrade: websocket',
      ...fields,
    ])
    expect(await sidecar.metric('postern_tunnels')).toBe(1)
    client.reset()
  })

  it.each(MALFORMED.slice(0, 2))(
    'H65 with %s is malformed if the rules are strict',
    async (_name, response) => {
      const { client, sidecar } = await attempt([response], 'strict')
      await client.waitFor('\r\n\r\n')
      expect(client.received).toMatch(/^HTTP\/1\.1 500 [\s\S]*http_protocol_error/)
      expect(await sidecar.metric('postern_tunnels')).toBe(0)
    },
  )

  it.each([
    ['an unknown coding', 'HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: identity\r\n\r\nno'],
    [
      'a coding before chunked',
      'HTTP/1.1 403 No\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n',
    ],
    ['101 of HTTP/2.0', `HTTP/2.0 101 Switching Protocols\r\n${UPGRADE}\r\n`],
    ['101 without the protocol', `${SWITCHING}Connection: Upgrade\r\n\r\n`],
    ['101 for another protocol', `${SWITCHING}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`],
  ])('H65 that Node would take is refused: %s', async (_name, response) => {
    const { client } = await attempt([response], 'strict')
    await client.waitFor('\r\n\r\n')
    expect(client.received).toMatch(/^HTTP\/1\.1 500 [\s\S]*(?:http_protocol_error|http_upgrade_failed)/)
  })

  it('H65 that refuses it has the body that the tolerant rules read', async () => {
    const { client } = await attempt(
      ['HTTP/1.1 403 Forbidden\nX-A : 1\nTransfer-Encoding: chunked\n\n2\nno\n0\n\n'],
      'auto',
    )
    expect(await client.closed).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n[\s\S]*X-A: 1\r\n[\s\S]*no/)
  })

  it('H65 keeps the bytes behind its head for the tunnel', async () => {
    const { client } = await attempt([`${SWITCHING}${UPGRADE}\r\nHTTP/1.1 200 OK\r\n\r\n`], 'auto')
    await client.waitFor('200 OK')
    expect(client.received.split('\r\n\r\n').slice(1)).toEqual(['HTTP/1.1 200 OK', ''])
    client.reset()
  })
})
