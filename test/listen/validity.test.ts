import { expect, it } from 'vitest'
import { describeValidity, inspectPair, validityOf } from '../../src/listen/tls-pair.ts'
import { type CertificateOptions, makeCertificate } from '../support/certificate.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

const DAY = 86_400_000
const SECOND = 1_000

/** Whole seconds, the resolution of certificates. */
const dayFrom = (clock: MovableClock, days: number): Date =>
  new Date(Math.round(clock.wall() / SECOND) * SECOND + days * DAY)

async function startWith(
  validity: (clock: MovableClock) => CertificateOptions,
): Promise<{ sidecar: TestSidecar; clock: MovableClock; certFile: string }> {
  const clock = stillClock()
  const { certFile, keyFile } = await makeCertificate('dated', validity(clock))
  const config = { listen: { tls: { cert: certFile, key: keyFile } } }
  return { sidecar: await startSidecar({ transport: 'tls', clock, config }), clock, certFile }
}

interface Line {
  readonly level: number
  readonly msg: string
  readonly reason: string
}

const certificateLines = (sidecar: TestSidecar): readonly Line[] =>
  sidecar
    .logLines()
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg.startsWith('the certificate'))

it('a certificate is expiring in its last 30 days, until its last second', () => {
  const bound = (at: number) => ({ at, of: 'it' })
  const period = { from: bound(0), until: bound(100 * DAY) }
  expect(
    [-1, 0, 70 * DAY - 1, 70 * DAY, 100 * DAY - 1, 100 * DAY].map((at) => validityOf(period, at)),
  ).toEqual(['not-yet-valid', 'valid', 'valid', 'expiring', 'expiring', 'expired'])
})

it.each([
  ['six days', 6 * DAY, 4 * DAY],
  ['a day', DAY, (2 * DAY) / 3],
  ['89 days', 89 * DAY, (2 * 89 * DAY) / 3],
  ['90 days', 90 * DAY, 60 * DAY],
])(
  'a certificate that lives %s is expiring once an ACME client should renew it, not all its life',
  (_, life, since) => {
    const period = { from: { at: 0, of: 'it' }, until: { at: life, of: 'it' } }
    expect([0, since - 1, since].map((at) => validityOf(period, Math.round(at)))).toEqual([
      'valid',
      'valid',
      'expiring',
    ])
  },
)

it('a chain is valid from the last start to the first expiry among its certificates', async () => {
  const clock = stillClock()
  const leaf = await makeCertificate('leaf', { notBefore: dayFrom(clock, -9), notAfter: dayFrom(clock, 90) })
  const middle = await makeCertificate('middle', {
    notBefore: dayFrom(clock, -1),
    notAfter: dayFrom(clock, 9),
  })
  const found = inspectPair(
    { path: 'cert.pem', text: leaf.cert + middle.cert },
    { path: 'key.pem', text: leaf.key },
  )
  if (typeof found === 'string') throw new Error(found)
  const of = 'certificate 2 of 2 in cert.pem'
  expect(found.valid).toEqual({
    from: { at: dayFrom(clock, -1).getTime(), of },
    until: { at: dayFrom(clock, 9).getTime(), of },
  })
  expect(describeValidity(found.valid, dayFrom(clock, 7).getTime())).toBe(
    `${of} expires on ${dayFrom(clock, 9).toISOString()}, in 2 days`,
  )
})

it('a running sidecar logs the last 30 days, once a day, and the expiry, and keeps serving', async () => {
  const { sidecar, clock, certFile } = await startWith((at) => ({
    notBefore: dayFrom(at, -60),
    notAfter: dayFrom(at, 40),
  }))
  const expiry = dayFrom(clock, 40)
  expect(await sidecar.metric('postern_certificate_expiry_timestamp_seconds')).toBe(expiry.getTime() / SECOND)
  expect(certificateLines(sidecar)).toEqual([])

  await clock.leap(10 * DAY + SECOND)
  await expect.poll(() => certificateLines(sidecar)).toHaveLength(1)
  expect(certificateLines(sidecar)[0]).toMatchObject({
    level: 40,
    msg: 'the certificate expires soon',
    reason: `the certificate in ${certFile} expires on ${expiry.toISOString()}, in 30 days`,
  })
  await clock.leap(DAY)
  await expect.poll(() => certificateLines(sidecar)).toHaveLength(2)
  expect(certificateLines(sidecar)[1]?.reason).toMatch(/in 29 days$/)

  await clock.leap(29 * DAY)
  await expect.poll(() => certificateLines(sidecar)).toHaveLength(3)
  expect(certificateLines(sidecar)[2]).toMatchObject({
    level: 50,
    msg: 'the certificate has expired',
    reason: `the certificate in ${certFile} expired on ${expiry.toISOString()}: clients that check it do not connect`,
  })
  expect((await sidecar.request({})).status).toBe(401)
})

it('a sidecar with an expired certificate starts and logs an error', async () => {
  const { sidecar, clock } = await startWith((at) => ({
    notBefore: dayFrom(at, -9),
    notAfter: dayFrom(at, -1),
  }))
  expect(certificateLines(sidecar)).toMatchObject([{ level: 50, msg: 'the certificate has expired' }])
  expect(await sidecar.metric('postern_certificate_expiry_timestamp_seconds')).toBe(
    dayFrom(clock, -1).getTime() / SECOND,
  )
  expect((await sidecar.request({})).status).toBe(401)
})

it('a certificate that is not valid yet is logged as an error, and the moment it becomes valid as information', async () => {
  const { sidecar, clock, certFile } = await startWith((at) => ({
    notBefore: dayFrom(at, 2),
    notAfter: dayFrom(at, 90),
  }))
  const from = dayFrom(clock, 2)
  expect(certificateLines(sidecar)).toMatchObject([
    {
      level: 50,
      msg: 'the certificate is not valid yet',
      reason: `the certificate in ${certFile} is not valid before ${from.toISOString()}: clients that check it do not connect. Is the clock right?`,
    },
  ])
  expect(await sidecar.metric('postern_certificate_not_before_timestamp_seconds')).toBe(
    from.getTime() / SECOND,
  )
  expect((await sidecar.request({})).status).toBe(401)
  await clock.leap(2 * DAY + SECOND)
  await expect.poll(() => certificateLines(sidecar)).toHaveLength(2)
  expect(certificateLines(sidecar)[1]).toMatchObject({ level: 30, msg: 'the certificate is valid' })
})

it('a sidecar without TLS logs and measures no certificate', async () => {
  const sidecar = await startSidecar()
  expect(await sidecar.metrics()).not.toMatch(/^postern_certificate_/m)
})
