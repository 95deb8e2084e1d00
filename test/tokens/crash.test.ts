import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { needs } from '../support/tools.ts'
import { present } from './support.ts'
import { pairs, startTokenProcess } from './token-process.ts'

interface KnownPair {
  readonly accessToken: string
  readonly refreshToken: string
  readonly alive: boolean
}

function isKnownPair(message: unknown): message is KnownPair {
  return typeof message === 'object' && message !== null && 'alive' in message
}

/** Kills three processes in one folder, each after 2 to 30 replies. Each process checks the replies of those before. */
async function killRepeatedly(dir: string, first: number): Promise<number> {
  const known = new Map<string, KnownPair>()
  let last: KnownPair[] = []
  for (let round = 0; round < 3; round++) {
    const sidecar = await startTokenProcess(dir)
    const expected = [...known.values()]
    const kinds = await sidecar.ask({ do: 'identify', tokens: expected.map((pair) => pair.accessToken) })
    expect(kinds).toEqual(expected.map((pair) => (pair.alive ? 'valid' : 'refused')))
    const refreshed = await sidecar.ask({ do: 'refresh', tokens: last.map((pair) => pair.refreshToken) })
    expect(pairs(refreshed).map((pair) => pair.refreshToken)).toEqual(last.map((pair) => pair.refreshToken))
    last = []
    // The kill comes at another moment each time: between a write and its reply, or during a write.
    const enough = 1 + (((first + round) * 37) % 30)
    let message = await sidecar.ask({ do: 'flood' })
    for (let count = 0; message !== undefined; count++) {
      if (isKnownPair(message)) {
        known.set(message.accessToken, message)
        if (message.alive) last.push(message)
      }
      if (count === enough) sidecar.child.kill('SIGKILL')
      message = await sidecar.next()
    }
    expect(sidecar.events).toEqual([])
    await sidecar.kill()
  }
  return known.size
}

test('H71 H102 through twelve kills, every token that was issued stays valid and every revoked one invalid', async () => {
  const dir = temporaryDirectory()
  const folders = ['a', 'b', 'c', 'd'].map((name) => join(dir, name))
  const counts = await Promise.all(folders.map((folder, i) => killRepeatedly(folder, 3 * i)))
  for (const count of counts) expect(count).toBeGreaterThan(20)
})

test('H71 C6 a refresh token that was spent before a crash can be used again within the grace, for one new pair', async () => {
  const dir = mkdtempSync(join(temporaryDirectory(), 'state-'))
  const first = await startTokenProcess(dir, { rotate: true })
  const [issued] = pairs(await first.ask({ do: 'issue', count: 1 }))
  const tokens = [present(issued).refreshToken]
  const [lost] = pairs(await first.ask({ do: 'refresh', tokens }))
  await first.kill()

  const second = await startTokenProcess(dir, { rotate: true })
  const [found] = pairs(await second.ask({ do: 'refresh', tokens }))
  expect(present(found).refreshToken).toMatch(/^[\w-]{43}$/)
  expect(present(found).refreshToken).not.toBe(present(lost).refreshToken)
  const alive = [present(issued), present(lost), present(found)].map((pair) => pair.accessToken)
  expect(await second.ask({ do: 'identify', tokens: alive })).toEqual(['valid', 'valid', 'valid'])
  // A repeated retry, and a client that did get the lost response, get the same pair.
  expect(pairs(await second.ask({ do: 'refresh', tokens }))).toEqual([found])
  expect(pairs(await second.ask({ do: 'refresh', tokens: [present(lost).refreshToken] }))).toEqual([found])
  await second.ask({ do: 'later', milliseconds: 10_000 })
  await second.kill()

  const third = await startTokenProcess(dir, { rotate: true })
  await third.ask({ do: 'later', milliseconds: 10_000 })
  expect(await third.ask({ do: 'refresh', tokens: [present(lost).refreshToken] })).toEqual([null])
  expect(await third.ask({ do: 'identify', tokens: alive })).toEqual(['refused', 'refused', 'refused'])
})

test('a second sidecar on the same folder is refused until the first has ended, even by a kill', async () => {
  const dir = temporaryDirectory()
  const first = await startTokenProcess(dir)
  await expect(startTokenProcess(dir)).rejects.toThrow(/another sidecar is using .*state_dir/)
  const [pair] = pairs(await first.ask({ do: 'issue', count: 1 }))
  await first.kill()
  const second = await startTokenProcess(dir)
  expect(await second.ask({ do: 'identify', tokens: [present(pair).accessToken] })).toEqual(['valid'])
})

test('C8 a revocation is synced to the disk before it returns; issuing tokens does not sync', async () => {
  needs('strace')
  const dir = temporaryDirectory()
  const log = join(dir, 'trace')
  const under = ['strace', '-f', '-y', '-s', '60', '-e', 'trace=write,fsync,fdatasync', '-o', log]
  const sidecar = await startTokenProcess(join(dir, 'state'), { under })
  await sidecar.ask({ do: 'issue', count: 20 })
  await sidecar.ask({ do: 'revoke' })
  await sidecar.kill()
  const calls = readFileSync(log, 'utf8').split('\n')
  const at = (text: string): number => calls.findIndex((call) => call.includes(text))
  const syncs = (from: number, to: number): number =>
    calls.slice(from, to).filter((call) => /f(data)?sync\(.*tokens\.db-wal/.test(call)).length
  const [ready, issued, revoked] = [at('ready'), at('accessToken'), at('\\"result\\":20')]
  expect(Math.min(ready, issued - ready, revoked - issued)).toBeGreaterThan(0)
  // One sync for twenty logins: SQLite syncs the header of a new write-ahead log.
  expect(syncs(ready, issued)).toBeLessThanOrEqual(1)
  expect(syncs(issued, revoked)).toBeGreaterThanOrEqual(1)
})
