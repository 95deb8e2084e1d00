import { expect, it } from 'vitest'
import { createLogOn } from '../../src/record/log.ts'
import { createMetrics } from '../../src/record/metrics.ts'
import { reportAbsent, sourceEvents, tokenEvents } from '../../src/tokens/state-events.ts'

/** A log and metrics, and what they have of the events since the last look. */
function start() {
  const lines: string[] = []
  const log = createLogOn('info', { write: (line) => lines.push(line) })
  const metrics = createMetrics({ version: '0', node: '0' })
  return {
    log,
    metrics,
    logged: () => lines.splice(0).map((line) => ({ ...JSON.parse(line), time: undefined })),
    counted: async (sample: string) => {
      const line = (await metrics.text()).split('\n').find((each) => each.startsWith(`postern_${sample} `))
      return line?.replace(/^.* /, '')
    },
  }
}

it('C8 revoked and evicted tokens are counted, and logged with at most a hundred of their grants', async () => {
  const { log, metrics, logged, counted } = start()
  const { revoked, evicted } = tokenEvents({ log, metrics })
  revoked(2, 'operator', ['c0ffee', 'monitor.f00d'])
  revoked(101, 'password_changed', Array<string>(101).fill('c0ffee'))
  revoked(1, 'operator')
  evicted('refresh', 3)
  const [two, many, unknown, gone] = logged()
  expect(two).toMatchObject({ level: 40, grants: 2, reason: 'operator', ids: ['c0ffee', 'monitor.f00d'] })
  expect(two).toHaveProperty('names', ['monitor'])
  expect(many).toMatchObject({ grants: 101, ids: Array<string>(100).fill('c0ffee') })
  expect(many).not.toHaveProperty('names')
  expect(unknown).not.toHaveProperty('ids')
  expect(gone).toMatchObject({ level: 40, kind: 'refresh', count: 3 })
  expect(await counted('tokens_revoked_total{reason="operator"}')).toBe('3')
  expect(await counted('tokens_revoked_total{reason="password_changed"}')).toBe('101')
  expect(await counted('tokens_evicted_total{kind="refresh"}')).toBe('3')
})

it('H165 what happens to the password source is counted and logged, and the name that it ends is told first', async () => {
  const { log, metrics, logged, counted } = start()
  const told: string[] = []
  const source = sourceEvents({ log, metrics, onPasswordRead: () => told.push('read') }, (name) =>
    told.push(`ended ${name}`),
  )
  expect(await counted('store_errors_total{store="password",operation="read"}')).toBe('0')
  source.changed()
  source.changed('monitor')
  source.absent('', 'empty')
  source.absent('monitor', 'empty')
  source.unreadable('EACCES')
  source.restored()
  source.ambiguous(['a', 'b'])
  expect(told).toEqual([
    ...['ended ', 'read', 'ended monitor', 'read'],
    ...['ended ', 'read', 'ended monitor', 'read'],
    'read',
  ])
  expect(logged().map(({ level, name, reason, names }) => [level, name ?? reason ?? names])).toEqual([
    [40, undefined],
    [40, 'monitor'],
    [50, 'empty'],
    [50, 'monitor'],
    [50, 'EACCES'],
    [30, undefined],
    [50, ['a', 'b']],
  ])
  expect(await counted('store_errors_total{store="password",operation="absent"}')).toBe('2')
  expect(await counted('store_errors_total{store="password",operation="read"}')).toBe('1')
})

it('H165 a password that is absent at the start is counted and logged, one that is present is not', async () => {
  const { log, metrics, logged, counted } = start()
  const absent = 'store_errors_total{store="password",operation="absent"}'
  reportAbsent({ log, metrics }, { readable: true, absent: undefined })
  expect([logged(), await counted(absent)]).toEqual([[], undefined])
  reportAbsent({ log, metrics }, { readable: true, absent: 'empty' })
  expect(logged()).toMatchObject([{ level: 50, reason: 'empty' }])
  expect(await counted(absent)).toBe('1')
})
