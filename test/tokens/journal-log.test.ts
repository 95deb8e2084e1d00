import { expect, it } from 'vitest'
import { createLogOn } from '../../src/record/log.ts'
import { createMetrics } from '../../src/record/metrics.ts'
import { journalLog } from '../../src/tokens/journal-log.ts'

function start() {
  const lines: Record<string, unknown>[] = []
  const log = createLogOn('info', { write: (line) => void lines.push(JSON.parse(line)) })
  const metrics = createMetrics({ version: '0', node: '0' })
  const counted = async (operation: string) => {
    const series = `postern_store_errors_total{store="file",operation="${operation}"} `
    return (await metrics.text())
      .split('\n')
      .find((line) => line.startsWith(series))
      ?.slice(series.length)
  }
  return { lines, counted, listener: journalLog('/var/lib/postern', { log, metrics }) }
}

it('H73 a token file that fails each five seconds is one line, with its path and the reason, until it works again', async () => {
  const { lines, counted, listener } = start()
  const full = new Error('database or disk is full')
  listener.failed('issue', full)
  for (let i = 0; i < 10; i += 1) listener.failed('open', full)
  expect(lines).toMatchObject([
    {
      level: 50,
      msg: 'token file: serving from memory',
      path: '/var/lib/postern/tokens.db',
      operation: 'issue',
      reason: 'database or disk is full',
    },
  ])
  expect(await counted('open')).toBe('10')
  // Another reason is news; the former one is not, when it comes back.
  for (const reason of ['attempt to write a readonly database', full.message])
    listener.failed('open', new Error(reason))
  expect(lines.slice(1)).toMatchObject([{ reason: 'attempt to write a readonly database' }])

  listener.recovered()
  listener.failed('issue', full)
  expect(lines.slice(2)).toMatchObject([
    { msg: 'token file: complete again' },
    { msg: 'token file: serving from memory', reason: full.message },
  ])
})

it.each(['damaged', 'unread'] as const)(
  'H165 a token file that is set aside (%s) is a line with what to do, and counted',
  async (fault) => {
    const { lines, counted, listener } = start()
    expect(await counted('set_aside')).toBe('0')
    listener.setAside(fault, '/var/lib/postern/tokens.db.x')
    expect(lines).toMatchObject([
      {
        level: 50,
        fault,
        path: '/var/lib/postern/tokens.db.x',
        remedy: expect.stringContaining('state_dir'),
      },
    ])
    expect(await counted('set_aside')).toBe('1')
  },
)

it('H73 a flush that fails each second is one line until one succeeds', () => {
  const { lines, listener } = start()
  const fault = new Error('i/o error')
  for (let i = 0; i < 5; i += 1) listener.failed('flush', fault)
  listener.recovered()
  listener.failed('flush', fault)
  const failed = ['token file: could not be flushed; a power cut may lose the latest tokens', 'i/o error']
  expect(lines.map(({ msg, reason }) => [msg, reason])).toEqual([
    failed,
    ['token file: complete again', undefined],
    failed,
  ])
})
