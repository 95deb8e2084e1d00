import { describe, expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { startBlackHole } from '../support/black-hole.ts'
import { makeCertificate } from '../support/certificate.ts'
import { passUntil } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { expectError } from '../support/expectations.ts'
import { unusedPort } from '../support/raw.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'
import {
  answering,
  expectFailure,
  failures,
  faultyLines,
  type Script,
  withEveryParser,
} from './faulty-device.ts'

const ok = 'HTTP/1.1 200 OK\r\n'
const protocol = 'http_protocol_error'
const nothing: Script = () => {}

/** Faults before the end of the response head. What of the bytes is a fault, the rows of `test/http1/faulty-responses.test.ts` say. */
const FAULTS: readonly (readonly [name: string, script: Script, failure: string])[] = [
  ['H47 C24 a close before the head', (peer) => peer.end(), 'connection_terminated'],
  ['H47 C24 a reset before the head', (peer) => peer.reset(), 'connection_terminated'],
  ['H47 C24 a close within the head', answering(`${ok}X-A: b`), 'http_response_incomplete'],
  [
    'H47 a reset within the head',
    // A reset discards bytes that the other side has not read yet.
    (peer) => peer.socket.write(`${ok}X-A: b`, () => void nextTurn().then(peer.reset)),
    'http_response_incomplete',
  ],
  ['H51 another protocol', answering('220 ftp.example.net ready\r\n\r\n'), protocol],
  ['H54 C23 five hundred 102s', answering(`${'HTTP/1.1 102 Wait\r\n\r\n'.repeat(500)}${ok}\r\nhi`), protocol],
  [
    'H57 a head beyond 64 KiB',
    answering(`${ok}X-A: ${'a'.repeat(70_000)}\r\n\r\nhi`),
    'http_response_header_section_size',
  ],
]

describe('C19 A fault of the device is reported to the client, in the metrics and in the log:', () => {
  it.each(FAULTS)('C19 %s', async (_name, script, failure) => {
    await withEveryParser(script, async (setup) => {
      for (const [at, request] of [{ body: 'once' }, {}].entries()) {
        const response = await setup.ask(request)
        expect(setup.device.received, 'the request is not repeated').toHaveLength(at + 1)
        expect(response.informational.length).toBeLessThanOrEqual(16)
        await expectFailure(setup, response, failure)
      }
      expect(await failures(setup)).toEqual({ [failure]: 2 })
      await expect.poll(() => faultyLines(setup)).toHaveLength(2)
    })
  })

  it('C19 H46 C24 a closed port', async () => {
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

  it('C19 H46 a connection that never opens', async () => {
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

  it.each([
    ['H46 a missing Unix socket', async () => 'http+unix:/nowhere/device.sock', 'destination_unavailable'],
    ['H46 an unknown name', async () => 'http://device.invalid', 'dns_error'],
    [
      'H46 H353 an untrusted certificate',
      async () => (await startDevice(undefined, { tls: await makeCertificate() })).url,
      'tls_certificate_error',
    ],
    [
      'H46 no TLS',
      // It ends nothing, so that its words are read.
      async () => (await startRawDevice((peer) => peer.write(ok))).url.replace('http:', 'https:'),
      'tls_protocol_error',
    ],
  ])('C19 %s', async (_name, urlOf, failure) => {
    await withEveryParser(
      nothing,
      async (setup) => {
        await expectFailure(setup, await setup.ask(), failure)
        expect(await failures(setup)).toEqual({ [failure]: 1 })
      },
      { url: await urlOf() },
    )
  })

  it.each<[string, Script]>([
    ['H55 no response', nothing],
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
  ])('C19 %s', async (_name, script) => {
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

describeProtocols('C19 C24 A device that was down', (transport) => {
  it('C19 C24 is used again when it is back', async () => {
    const device = await startDevice()
    const port = Number(new URL(device.url).port)
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).status).toBe(200)
    await device.stop()
    const refused = await passUntil(sidecar.clock, sidecar.request({ token }))
    expectError(refused, 500, 'upstream_unavailable')
    await startDevice(undefined, { port })
    expect((await sidecar.request({ token })).text).toBe('from the device')
  })
})
