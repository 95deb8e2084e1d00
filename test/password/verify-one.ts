import type { Credential } from '../../src/password/stored-line.ts'
import type { Verification, Verifier } from '../../src/password/verifier.ts'

/** Verifies against one credential. */
export async function verifyOne(
  verifier: Verifier,
  credential: Credential,
  password: string,
  client: string,
): Promise<Verification> {
  const found = await verifier.verify([credential], password, client)
  return found === 'overloaded' ? found : found.length === 1 ? 'right' : 'wrong'
}
