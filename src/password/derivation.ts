// The default import: a named one of something that this Node lacks would keep the whole program from starting.
import crypto from 'node:crypto'
import type { DerivedCredential } from './credential.ts'

/** Whether this Node can do argon2: 24.7 or later, linked with an OpenSSL that has it. */
export function argon2Available(): boolean {
  if (typeof crypto.argon2Sync !== 'function') return false
  try {
    crypto.argon2Sync('argon2id', {
      message: '',
      nonce: Buffer.alloc(8),
      parallelism: 1,
      tagLength: 4,
      memory: 8,
      passes: 1,
    })
    return true
  } catch {
    return false
  }
}

/** What `password` derives to under the parameters of a stored credential, in libuv's thread pool. */
export function derive(parameters: DerivedCredential, password: string): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const done = (error: Error | null, derived: Buffer): void => {
    if (error === null) resolve(derived)
    else reject(error)
  }
  if (parameters.kind === 'argon2id') {
    const { memory, passes, parallelism, salt, tag } = parameters
    const options = { message: password, nonce: salt, parallelism, tagLength: tag.length, memory, passes }
    crypto.argon2('argon2id', options, done)
  } else {
    const { cost, blockSize, parallelism, salt, tag } = parameters
    // OpenSSL counts a little beside the table itself; what the parameters may ask for is bounded at load.
    const maxmem = 128 * blockSize * (cost + parallelism + 4) + 65_536
    crypto.scrypt(password, salt, tag.length, { cost, blockSize, parallelization: parallelism, maxmem }, done)
  }
  return promise
}
