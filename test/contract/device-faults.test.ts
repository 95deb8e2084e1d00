import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { makeCertificate } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import type { Request } from '../support/message.ts'
import { unusedPort } from '../support/raw.ts'
import { startBlackHole } from '../support/black-hole.ts'
import {
  answering,
  expectFailure,
  failures,
  faultyLines,
  type Script,
  type Setup,
  withEveryParser,
} from './faulty-device.ts'

/** A fault before the end of the response head: the error it must be reported as, for each parser. */
interface Fault {
  readonly name: string
  readonly script: Script
  readonly strict: string
  /** The same as `strict` by default; `hi` means that the parser accepts the response. */
  readonly tolerant?: string
}

const ok = 'HTTP/1.1 200 OK\r\n'
const protocol = 'http_protocol_error'

const faults: readonly Fault[] = [
  { name: 'H47 a close before the head', script: (peer) => peer.end(), strict: 'connection_terminated' },
  { name: 'H47 a reset before the head', script: (peer) => peer.reset(), strict: 'connection_terminated' },
  {
    name: 'H47 a close within the head',
    script: answering(`${ok}X-A: b`),
    strict: 'http_response_incomplete',
  },
  {
    name: 'H47 a reset within the head',
    script(peer) {
      // A reset discards bytes that the other side has not read yet.
      peer.socket.write(`${ok}X-A: b`, () => void nextTurn().then(peer.reset))
    },
    strict: 'http_response_incomplete',
  },
  { name: 'H51 garbage', script: answering('\x00\x01\x02 what?\r\n\r\n'), strict: protocol },
  { name: 'H51 another protocol', script: answering('220 ftp.example.net ready\r\n\r\n'), strict: protocol },
  { name: 'H51 a body without a head', script: answering('<html>hi</html>'), strict: protocol },
  {
    name: 'H51 bare LF',
    script: answering('HTTP/1.1 200 OK\nContent-Length: 2\n\nhi'),
    strict: protocol,
    tolerant: 'hi',
  },
  { name: 'H51 a status of two digits', script: answering('HTTP/1.1 20 OK\r\n\r\nhi'), strict: protocol },
  { name: 'H51 a status of four digits', script: answering('HTTP/1.1 2000 OK\r\n\r\nhi'), strict: protocol },
  { name: 'H51 a status below 100', script: answering('HTTP/1.1 099 OK\r\n\r\nhi'), strict: protocol },
  { name: 'H51 no status', script: answering('HTTP/1.1 OK\r\n\r\nhi'), strict: protocol },
  {
    name: 'H52 the same length twice',
    script: answering(`${ok}Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi`),
    strict: protocol,
    tolerant: 'hi',
  },
  {
    name: 'H52 two different lengths',
    script: answering(`${ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!`),
    strict: protocol,
  },
  {
    name: 'H53 a transfer coding that the request did not ask for',
    script: answering(`${ok}Transfer-Encoding: gzip\r\n\r\n\x1f\x8b\x08`),
    strict: protocol,
  },
  {
    name: 'H53 a transfer coding below chunked',
    script: answering(`${ok}Transfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`),
    strict: protocol,
  },
  {
    name: 'H54 an unasked 101',
    script: answering('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhi'),
    strict: protocol,
  },
  ...[100, 102, 103].map((status) => ({
    name: `H54 five hundred ${status}s`,
    script: answering(
      `${`HTTP/1.1 ${status} Wait\r\nLink: </a>\r\n\r\n`.repeat(500)}${ok}Content-Length: 2\r\n\r\nhi`,
    ),
    strict: protocol,
  })),
  {
    name: 'H57 a head beyond 64 KiB',
    script: answering(`${ok}X-A: ${'a'.repeat(70_000)}\r\n\r\nhi`),
    strict: 'http_response_header_section_size',
  },
]

describe('A faulty response head is reported to the client, in the metrics and in the log:', () => {
  async function expectOutcome(setup: Setup, outcome: string, request: Request): Promise<void> {
    const before = setup.device.received.length
    const response = await setup.ask(request)
    expect(setup.device.received.length - before, 'the request is not repeated').toBe(1)
    expect(response.informational.length).toBeLessThanOrEqual(16)
    if (outcome !== 'hi') return expectFailure(setup, response, outcome)
    expect([response.status, response.text]).toEqual([200, 'hi'])
    expect(faultyLines(setup).at(-1)).toMatchObject({ status: 200, out: 2 })
  }

  it.each(faults)('$name', async ({ script, strict, tolerant = strict }) => {
    await withEveryParser(script, async (setup) => {
      // `auto` reads the first sloppy response too: it does not repeat the request for it.
      const outcome = setup.parser === 'strict' ? strict : tolerant
      const outcomes = [outcome, outcome]
      await expectOutcome(setup, outcome, { body: 'once' })
      await expectOutcome(setup, outcome, {})
      const counts = Map.groupBy(
        outcomes.filter((outcome) => outcome !== 'hi'),
        (outcome) => outcome,
      )
      expect(await failures(setup)).toEqual(
        Object.fromEntries([...counts].map(([failure, { length }]) => [failure, length])),
      )
      expect(faultyLines(setup)).toHaveLength(2)
    })
  })
})

describe('A device that cannot be reached and one that does not respond have different errors:', () => {
  const nothing: Script = () => {}

  it('H46 a closed port: connection_refused', async () => {
    const url = `http://127.0.0.1:${await unusedPort()}`
    await withEveryParser(
      nothing,
      async (setup) => {
        for (const request of [{}, { body: 'x' }])
          await expectFailure(setup, await setup.ask(request), 'connection_refused')
        expect(await failures(setup)).toEqual({ connection_refused: 2 })
        expect(await setup.sidecar.metric('postern_upstream_up')).toBe(0)
      },
      { url },
    )
  })

  it('H46 a connection that never opens: connection_timeout', async () => {
    const url = await startBlackHole()
    await withEveryParser(
      nothing,
      async (setup) => {
        const { clock } = setup.sidecar
        const asked = setup.ask({})
        await expect.poll(() => setup.sidecar.metric('postern_upstream_in_flight')).toBe(1)
        await clock.advance(4_999)
        expect(await failures(setup)).toEqual({})
        await clock.advance(1)
        await expectFailure(setup, await asked, 'connection_timeout')
        expect(await failures(setup)).toEqual({ connection_timeout: 1 })
      },
      { url },
    )
  })

  it('H46 a missing Unix socket: destination_unavailable', async () => {
    await withEveryParser(
      nothing,
      async (setup) => {
        await expectFailure(setup, await setup.ask(), 'destination_unavailable')
        expect(await failures(setup)).toEqual({ destination_unavailable: 1 })
      },
      { url: 'http+unix:/nowhere/device.sock' },
    )
  })

  it('H46 an unknown name: dns_error', async () => {
    await withEveryParser(nothing, async (setup) => expectFailure(setup, await setup.ask(), 'dns_error'), {
      url: 'http://device.invalid',
    })
  })

  it('H46 H353 an untrusted certificate: tls_certificate_error; no TLS: tls_protocol_error', async () => {
    const untrusted = await startDevice(undefined, { tls: await makeCertificate() })
    const plain = (await startDevice()).url.replace('http:', 'https:')
    for (const [url, failure] of [
      [untrusted.url, 'tls_certificate_error'],
      [plain, 'tls_protocol_error'],
    ] as const) {
      await withEveryParser(nothing, async (setup) => expectFailure(setup, await setup.ask(), failure), {
        url,
      })
    }
  })

  it.each<[string, Script]>([
    ['H55 no response', nothing],
    ['H55 a head that stops in the middle', (peer) => peer.write(`${ok}X-A: b\r\n`)],
    [
      'H55 an endless head, byte by byte',
      async (peer, cue) => {
        peer.write(`${ok}X-A: `)
        for (;;) {
          await cue()
          peer.write('a')
        }
      },
    ],
  ])('%s', async (_name, script) => {
    await withEveryParser(script, async (setup) => {
      const { sidecar, device } = setup
      const asked = setup.ask({})
      await expect.poll(() => device.received.length).toBe(1)
      for (let second = 1; second < 30; second += 1) {
        device.proceed()
        await sidecar.clock.advance(1_000)
      }
      await sidecar.clock.advance(999)
      expect(await failures(setup)).toEqual({})
      await sidecar.clock.advance(1)
      await expectFailure(setup, await asked, 'http_response_timeout')
      expect(await failures(setup)).toEqual({ http_response_timeout: 1 })
      expect(device.received).toHaveLength(1)
    })
  })

  it('H55 endless interim responses (102), each just before the deadline', async () => {
    const script: Script = async (peer, cue) => {
      while (!peer.socket.destroyed) {
        await cue()
        peer.write('HTTP/1.1 102 Processing\r\n\r\n')
      }
    }
    await withEveryParser(script, async (setup) => {
      const { sidecar, token, device } = setup
      const connection = await sidecar.connect()
      const exchange = connection.start({ path: '/faulty', fields: ['Authorization', `Bearer ${token}`] })
      await expect.poll(() => device.received.length).toBe(1)
      // Each restarts the deadline.
      for (let sent = 1; sent <= 16; sent += 1) {
        await sidecar.clock.advance(29_999)
        device.proceed()
        await expect.poll(() => exchange.informational.length).toBe(sent)
      }
      device.proceed()
      await expectFailure(setup, await exchange.response, protocol)
      connection.close()
      expect(await failures(setup)).toEqual({ [protocol]: 1 })
      expect(device.received).toHaveLength(1)
    })
  })
})
