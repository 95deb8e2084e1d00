import { describe, expect, it } from 'vitest'
import { makeCertificate } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import type { Request } from '../support/message.ts'
import { unusedPort } from '../support/raw.ts'
import { startBlackHole } from './black-hole.ts'
import {
  expectFailure,
  failures,
  inEveryLane,
  logged,
  type Script,
  saying,
  type World,
} from './faulty-device.ts'

/** A fault before the head of the answer: what must be said of it, or what the tolerant lane makes of it. */
interface Fault {
  readonly name: string
  readonly script: Script
  readonly strict: string
  /** As in the strict lane, unless told; `hi`: it is read. */
  readonly tolerant?: string
}

const ok = 'HTTP/1.1 200 OK\r\n'
const protocol = 'http_protocol_error'

const faults: readonly Fault[] = [
  { name: 'H47 closing before the head', script: (peer) => peer.end(), strict: 'connection_terminated' },
  { name: 'H47 resetting before the head', script: (peer) => peer.reset(), strict: 'connection_terminated' },
  { name: 'H47 closing within the head', script: saying(`${ok}X-A: b`), strict: 'http_response_incomplete' },
  {
    name: 'H47 resetting within the head',
    script(peer) {
      peer.socket.write(`${ok}X-A: b`, () => setImmediate(() => peer.reset()))
    },
    strict: 'http_response_incomplete',
  },
  { name: 'H51 garbage', script: saying('\x00\x01\x02 what?\r\n\r\n'), strict: protocol },
  { name: 'H51 another protocol', script: saying('220 ftp.example.net ready\r\n\r\n'), strict: protocol },
  { name: 'H51 a body without a head', script: saying('<html>hi</html>'), strict: protocol },
  {
    name: 'H51 bare LF',
    script: saying('HTTP/1.1 200 OK\nContent-Length: 2\n\nhi'),
    strict: protocol,
    tolerant: 'hi',
  },
  { name: 'H51 a status of two digits', script: saying('HTTP/1.1 20 OK\r\n\r\nhi'), strict: protocol },
  { name: 'H51 a status of four digits', script: saying('HTTP/1.1 2000 OK\r\n\r\nhi'), strict: protocol },
  { name: 'H51 a status below 100', script: saying('HTTP/1.1 099 OK\r\n\r\nhi'), strict: protocol },
  { name: 'H51 a status that is none', script: saying('HTTP/1.1 OK\r\n\r\nhi'), strict: protocol },
  {
    name: 'H52 one length twice',
    script: saying(`${ok}Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi`),
    strict: protocol,
    tolerant: 'hi',
  },
  {
    name: 'H52 two lengths',
    script: saying(`${ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!`),
    strict: protocol,
  },
  {
    name: 'H53 a transfer coding that nobody asked for',
    script: saying(`${ok}Transfer-Encoding: gzip\r\n\r\n\x1f\x8b\x08`),
    strict: protocol,
  },
  {
    name: 'H53 a transfer coding below chunks',
    script: saying(`${ok}Transfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`),
    strict: protocol,
  },
  {
    name: 'H54 an unasked 101',
    script: saying('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhi'),
    strict: protocol,
  },
  ...[100, 102, 103].map((status) => ({
    name: `H54 five hundred ${status}s`,
    script: saying(
      `${`HTTP/1.1 ${status} Wait\r\nLink: </a>\r\n\r\n`.repeat(500)}${ok}Content-Length: 2\r\n\r\nhi`,
    ),
    strict: protocol,
  })),
  {
    name: 'H57 a head beyond 64 KiB',
    script: saying(`${ok}X-A: ${'a'.repeat(70_000)}\r\n\r\nhi`),
    strict: 'http_response_header_section_size',
  },
]

describe('A device answers with a fault, and the client is told so, as are metrics and log:', () => {
  async function expectOutcome(world: World, outcome: string, request: Request): Promise<void> {
    const before = world.device.asked.length
    const answer = await world.ask(request)
    expect(world.device.asked.length - before, 'never asked twice').toBe(1)
    expect(answer.informational.length).toBeLessThanOrEqual(16)
    if (outcome !== 'hi') return expectFailure(world, answer, outcome)
    expect([answer.status, answer.text]).toEqual([200, 'hi'])
    expect(logged(world).at(-1)).toMatchObject({ status: 200, out: 2 })
  }

  it.each(faults)('$name', async ({ script, strict, tolerant = strict }) => {
    await inEveryLane(script, async (world) => {
      // Also the first answer that `auto` finds sloppy is read: the request is not sent twice for it.
      const outcome = world.lane === 'strict' ? strict : tolerant
      const outcomes = [outcome, outcome]
      await expectOutcome(world, outcome, { body: 'once' })
      await expectOutcome(world, outcome, {})
      const counts = Map.groupBy(
        outcomes.filter((outcome) => outcome !== 'hi'),
        (outcome) => outcome,
      )
      expect(await failures(world)).toEqual(
        Object.fromEntries([...counts].map(([failure, { length }]) => [failure, length])),
      )
      expect(logged(world)).toHaveLength(2)
    })
  })
})

describe('A device that cannot be reached is told from one that does not answer:', () => {
  const nothing: Script = () => {}

  it('H46 nobody listens', async () => {
    const url = `http://127.0.0.1:${await unusedPort()}`
    await inEveryLane(
      nothing,
      async (world) => {
        for (const request of [{}, { body: 'x' }])
          await expectFailure(world, await world.ask(request), 'connection_refused')
        expect(await failures(world)).toEqual({ connection_refused: 2 })
        expect(await world.sidecar.metric('postern_upstream_up')).toBe(0)
      },
      { url },
    )
  })

  it('H46 a black hole: connections never open', async () => {
    const url = await startBlackHole()
    await inEveryLane(
      nothing,
      async (world) => {
        await expectFailure(world, await world.ask({ timeout: 5000 }), 'connection_timeout')
        expect(await failures(world)).toEqual({ connection_timeout: 1 })
      },
      { url, upstream: { connect_timeout: '300ms' } },
    )
  })

  it('H46 a Unix socket that is not there', async () => {
    await inEveryLane(
      nothing,
      async (world) => {
        await expectFailure(world, await world.ask(), 'destination_unavailable')
        expect(await failures(world)).toEqual({ destination_unavailable: 1 })
      },
      { url: 'http+unix:/nowhere/device.sock' },
    )
  })

  it('H46 a name that nobody knows', async () => {
    await inEveryLane(nothing, async (world) => expectFailure(world, await world.ask(), 'dns_error'), {
      url: 'http://device.invalid',
    })
  })

  it('H46 a certificate that nobody vouches for, and no TLS at all', async () => {
    const untrusted = await startDevice(undefined, { tls: await makeCertificate() })
    const plain = (await startDevice()).url.replace('http:', 'https:')
    for (const [url, failure] of [
      [untrusted.url, 'tls_certificate_error'],
      [plain, 'tls_protocol_error'],
    ] as const) {
      await inEveryLane(nothing, async (world) => expectFailure(world, await world.ask(), failure), { url })
    }
  })

  it.each<[string, Script]>([
    ['H55 it never answers', nothing],
    ['H55 it stops within the head', (peer) => peer.write(`${ok}X-A: b\r\n`)],
    [
      'H55 it sends its head a byte at a time, without end',
      async (peer) => {
        peer.write(`${ok}X-A: `)
        while (!peer.socket.destroyed) {
          peer.write('a')
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
      },
    ],
    [
      'H55 it says again and again that it is still busy',
      async (peer) => {
        while (!peer.socket.destroyed) {
          peer.write('HTTP/1.1 102 Processing\r\n\r\n')
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
      },
    ],
  ])('%s', async (name, script) => {
    const failure = name.includes('busy') ? protocol : 'http_response_timeout'
    await inEveryLane(
      script,
      async (world) => {
        await expectFailure(world, await world.ask({ timeout: 5000 }), failure)
        expect(await failures(world)).toEqual({ [failure]: 1 })
        expect(world.device.asked).toHaveLength(1)
      },
      { upstream: { response_timeout: '300ms' } },
    )
  })
})
