import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, it } from 'vitest'
import { openCertificate, reportOnce } from '../../src/listen/served-certificate.ts'
import { createLogOn } from '../../src/record/log.ts'
import type { MachineNames } from '../../src/system/machine-names.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { stillClock } from '../support/clock.ts'
import { sharedPair } from '../support/made-once.ts'
import { startSidecar } from '../support/sidecar.ts'

/** How often the names of the machine are compared with the certificate (ms). */
const LOOK = 60_000

/** Counts how often the names of a machine are read. */
function countedMachine(): { readonly machine: () => MachineNames; readonly looks: () => number } {
  let looks = 0
  return {
    machine: () => {
      looks += 1
      return { names: ['box'], addresses: [] }
    },
    looks: () => looks,
  }
}

it('the names of the machine are read only for a self-signed certificate', async () => {
  const clock = stillClock()
  const [own, automatic] = [countedMachine(), countedMachine()]
  const start = (tls: unknown, { machine }: typeof own): Promise<unknown> =>
    startSidecar({ transport: 'tls', config: { listen: { tls } }, machine, clock })
  await start(sharedPair(), own)
  await start('auto', automatic)
  const atStart = automatic.looks()
  await clock.advance(10 * LOOK)
  expect([automatic.looks(), own.looks()]).toEqual([atStart + 10, 0])
})

it('a stop waits for the certificate that is being written, and serves it no more', async () => {
  const stateDir = temporaryDirectory()
  const clock = stillClock()
  const comparing = Promise.withResolvers<void>()
  let looks = -1
  const served: unknown[] = []
  const certificate = await openCertificate('auto', stateDir, {
    clock,
    log: createLogOn('silent', { write: () => {} }),
    metrics: { certificateServed: () => {} },
    machine() {
      if (looks >= 0) looks += 1
      if (looks === 1) comparing.resolve()
      return { names: looks < 0 ? ['box'] : ['box', 'added.example'], addresses: [] }
    },
    compareEvery: LOOK,
  })
  const stored = (): string => readFileSync(join(stateDir, 'tls', 'cert.pem'), 'utf8')
  const before = stored()
  looks = 0
  certificate.serve((material) => served.push(material))
  // At once: it is written within a few turns.
  const closed = comparing.promise.then(() => certificate[Symbol.asyncDispose]())
  await clock.advance(LOOK)
  await closed
  expect(stored()).not.toBe(before)
  expect(served).toEqual([])
})

it('H112 an address that is new gets into the certificate when a client connects to it, long before the next look', async () => {
  let added: readonly string[] = []
  const machine = (): MachineNames => ({ names: ['box'], addresses: added })
  const sidecar = await startSidecar({
    transport: 'tls',
    config: { listen: { tls: 'auto', address: '0.0.0.0:0' } },
    machine,
  })
  const port = Number(new URL(sidecar.url).port)
  const namesAt = (host: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect({ host, port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerX509Certificate()?.subjectAltName ?? '')
        socket.destroy()
      }).on('error', reject)
    })
  await namesAt('127.0.0.7')
  expect(await namesAt('127.0.0.7')).not.toContain('127.0.0.7')
  added = ['127.0.0.8']
  await namesAt('127.0.0.8')
  await expect.poll(() => namesAt('127.0.0.8')).toContain('127.0.0.8')
})

it('a problem is reported once, and again when it comes back', () => {
  const reported: unknown[] = []
  const report = reportOnce((problem) => reported.push(problem))
  for (const problem of ['full', 'full', 'read-only', undefined, 'read-only']) report(problem)
  expect(reported).toEqual(['full', 'read-only', 'read-only'])
})
