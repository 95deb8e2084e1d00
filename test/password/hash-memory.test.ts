import { expect, it } from 'vitest'
import { derive, hashPassword } from '../../src/password/key-derivation.ts'
import { parseStoredLine } from '../../src/password/stored-line.ts'
import { createVerifier } from '../../src/password/verifier.ts'
import { closeLater } from '../support/cleanup.ts'
import { startSidecar } from '../support/sidecar.ts'

const MIB = 1024 ** 2

function verifierWith(limit: number) {
  let [held, most] = [0, 0]
  const verifier = createVerifier({
    limit,
    hold(change) {
      held += change
      most = Math.max(most, held)
    },
  })
  closeLater(verifier.close)
  return { verifier, held: () => held, most: () => most }
}

const credential = (line: string) => {
  const parsed = parseStoredLine(line, true)
  return typeof parsed === 'string' ? expect.fail(parsed) : parsed
}

it('H287 two hashes are verified at once if both fit, otherwise one after the other', async () => {
  const stored = credential(await hashPassword('right'))
  const needed = 19_456 * 1024
  for (const [limit, atOnce] of [
    [64 * MIB, 2],
    [30 * MIB, 1],
  ] as const) {
    const { verifier, held, most } = verifierWith(limit)
    const found = await Promise.all(['right', 'wrong', 'right'].map((each) => verifier.verify([stored], each, each)))
    expect(found).toEqual([[0], [], [0]])
    expect([most(), held()]).toEqual([atOnce * needed, 0])
  }
})

it('H287 a hash that takes more memory than clients may hold is refused at the start', async () => {
  const salt = Buffer.alloc(16)
  const tag = await derive(
    { kind: 'argon2id', memory: 8_192, passes: 1, parallelism: 1, salt, tag: Buffer.alloc(16) },
    'right',
  )
  const text = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '')
  const password = `$argon2id$v=19$m=8192,t=1,p=1$${text(salt)}$${text(tag)}`
  await expect(startSidecar({ password, config: { listen: { memory: '4MiB' } } })).rejects.toThrow(
    /a login with this hash takes 8 MiB, and clients may hold 4 MiB \(listen\.memory\)/,
  )
  await startSidecar({ password, config: { listen: { memory: '16MiB' } } })
})
