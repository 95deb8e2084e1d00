import { access, constants } from 'node:fs/promises'
import { secretFiles } from '../config/files.ts'
import { pagePasswordSources, passwordSources } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import { ownPair } from '../config/tls-field.ts'
import { readPair } from '../listen/tls-material.ts'
import { endsStart, readOnlyLine, readSource, type SourceContent } from '../password/read-source.ts'
import { beyondMemory } from '../password/verifier.ts'
import type { Logger } from '../record/log.ts'
import { isWithheld, SetupError } from '../system/setup-error.ts'
import { planMemory } from './client-memory.ts'

/** A file that the start needs, perhaps with others, and why it cannot be used; undefined if it can. */
interface Needed {
  readonly key: string
  readonly file: string
  readonly others?: readonly string[]
  readonly reasonOf: () => Promise<string | undefined>
}

/**
 * Logs each password file, and the certificate, if it is missing or cannot be used: the running sidecar keeps what it has read, or waits for
 * a restart with it, but the next start fails. A file that Node's permission model withholds from this process is not judged.
 */
export async function warnOfNextStart(config: Config, log: Logger): Promise<void> {
  const { limit } = await planMemory(config)
  const needed = [...passwordFiles(config, limit), ...sentPasswords(config), ...certificate(config)]
  const reasons = await Promise.all(needed.map(whyUnusable))
  for (const [at, { key, file }] of needed.entries()) {
    const reason = reasons[at]
    if (reason !== undefined)
      log.warn({ key, file, reason }, 'the next start will fail, because it cannot use this file')
  }
}

/** Undefined if the file can be used, or is withheld from this process. */
async function whyUnusable({ file, others = [], reasonOf }: Needed): Promise<string | undefined> {
  const reads = [file, ...others].map((path) => access(path, constants.R_OK))
  const isHidden = await Promise.all(reads).then(() => false, isWithheld)
  return isHidden ? undefined : reasonOf()
}

function passwordFiles(config: Config, limit: number): readonly Needed[] {
  const passwords = passwordSources(config)
  return [...passwords, ...pagePasswordSources(config.admin)].map((source) => ({
    ...source,
    reasonOf: async () => whyNoStart(await readSource(source), passwords.length > 1, limit),
  }))
}

/** The passwords that the sidecar itself sends: to the device and to the shared store. */
function sentPasswords(config: Config): readonly Needed[] {
  return secretFiles(config)
    .filter(({ key }) => key === 'store.password_file' || key.endsWith('.auth.password.file'))
    .map((secret) => ({
      ...secret,
      async reasonOf() {
        const line = await readOnlyLine(secret.file)
        return typeof line === 'string' ? undefined : line.reason
      },
    }))
}

/** A reload does not read the operator's pair while the listener speaks cleartext: `listen.tls` waits for the restart. */
function certificate({ listen }: Config): readonly Needed[] {
  const own = ownPair(listen.tls)
  if (own === undefined) return []
  const reasonOf = (): Promise<string | undefined> =>
    readPair(own).then(
      () => undefined,
      (error: unknown) => {
        if (error instanceof SetupError) return error.reason
        throw error
      },
    )
  return [{ key: 'listen.tls', file: own.cert, others: [own.key], reasonOf }]
}

function whyNoStart(content: SourceContent, isOneOfSeveral: boolean, limit: number): string | undefined {
  if ('reason' in content) return content.reason
  if (endsStart(content, isOneOfSeveral)) return content.absent
  return 'credential' in content ? beyondMemory(content.credential, limit) : undefined
}
