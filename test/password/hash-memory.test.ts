import { expect, it } from 'vitest'
import { derive } from '../../src/password/key-derivation.ts'
import { parseStoredLine } from '../../src/password/stored-line.ts'
import { createVerifier } from '../../src/password/verifier.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { startSidecar } from '../support/sidecar.ts'

const MIB = 1024 ** 2

/** The line of a password whose verification takes so much memory (MiB). */
async function lineFor(password: string, mib: number): Promise<string> {
  const [salt, memory] = [Buffer.alloc(16), 1024 * mib]
  const parameters = { memory, passes: 1, parallelism: 1, salt, tag: Buffer.alloc(16) }
  const tag = await derive({ kind: 'argon2id', ...parameters }, password)
  const text = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '')
  return `$argon2id$v=19$m=${memory},t=1,p=1$${text(salt)}$${text(tag)}`
}

it.each([
  ['two hashes are verified at once if both fit', 12, 2],
  ['one hash follows the other if they do not fit together', 6, 1],
])('H251 %s', async (_, limit, atOnce) => {
  let [held, most] = [0, 0]
  const verifier = createVerifier(stillClock(), {
    limit: limit * MIB,
    hold(change) {
      held += change
      most = Math.max(most, held)
    },
  })
  closeLater(verifier.close)
  const stored = parseStoredLine(await lineFor('right', 4), false)
  if (typeof stored === 'string') expect.fail(stored)
  const verified = ['right', 'wrong'].map((password) => verifier.verify([stored], password, password))
  expect(await Promise.all(verified)).toEqual([[0], []])
  expect([most, held]).toEqual([atOnce * 4 * MIB, 0])
})

it('H251 a hash that takes more memory than clients may hold is refused at the start', async () => {
  const password = await lineFor('right', 8)
  await expect(startSidecar({ password, config: { listen: { memory: '4MiB' } } })).rejects.toThrow(
    /a login with this hash takes 8 MiB, and clients may hold 4 MiB \(listen\.memory\)/,
  )
  await startSidecar({ password, config: { listen: { memory: '16MiB' } } })
})
