import { stat } from 'node:fs/promises'
import { secretFiles, type TrustedPath, trustedPaths } from '../config/files.ts'
import { pagePasswordSources, passwordSources, socketOfHook } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import { type FileFacts, type UnsafeSetting, unsafeSettings } from '../config/unsafe.ts'
import { readSource } from '../password/read-source.ts'
import { cheapHash, hasOuterBlank, mistakenFor, weaknessOf } from '../password/strength.ts'
import type { Logger } from '../record/log.ts'
import { otherWriters } from '../system/other-writers.ts'

/**
 * The unsafe settings, weak passwords and cheap hashes, and files that are open to other users.
 *
 * @param configFile the configuration file, if there is one
 */
export async function configWarnings(config: Config, configFile?: string): Promise<readonly UnsafeSetting[]> {
  const file =
    configFile === undefined ? [] : [{ key: 'configuration', file: configFile, judged: 'mode' } as const]
  const trusted = [...trustedPaths(config), ...file].map(factsOfTrusted)
  return unsafeSettings(config, [...(await readSecretFacts(config)), ...(await Promise.all(trusted))])
}

async function factsOfTrusted({ key, file, judged }: TrustedPath): Promise<FileFacts> {
  const writers = await otherWriters(file, { anyOwner: judged !== 'owner and mode' })
  const writer = writers.find(({ isLast }) => !isLast || judged !== 'folders above')
  return { key, file, mode: 0, writer }
}

/** Reads the facts of the files with secrets. A file that cannot be read causes no warning: the code that opens it reports the error. */
async function readSecretFacts(config: Config): Promise<readonly FileFacts[]> {
  const files = secretFiles(config)
  const socket = socketOfHook(config)
  const sources = new Map(
    [...passwordSources(config), ...pagePasswordSources(config.admin)].map((source) => [source.key, source]),
  )
  const sent = new Set(files.filter(({ key }) => key.startsWith('upstream.')).map(({ file }) => file))
  const reads = files.map(async (secret): Promise<FileFacts> => {
    const found = await stat(secret.file).catch(() => undefined)
    // A folder in place of the file is another fault: `chmod` would lock its owner out.
    const mode = found?.isFile() === true ? found.mode : 0
    // Its own mode has a row of its own.
    const facts = { ...(await factsOfTrusted({ ...secret, judged: 'folders above' })), mode }
    const source = sources.get(secret.key)
    const read = source && (await readSource(source))
    if (read === undefined || !('line' in read)) return facts
    const { line, credential } = read
    const isPlain = credential.kind === 'plain'
    const password = {
      user: source?.user,
      isPlain,
      isSent: sent.has(secret.file),
      weakness: isPlain ? weaknessOf(line) : undefined,
      cheapHash: cheapHash(credential),
      mistakenFor: isPlain ? mistakenFor(line) : undefined,
      hasOuterBlank: isPlain && hasOuterBlank(line),
    }
    return { ...facts, password }
  })
  if (socket !== undefined) reads.push(factsOfSocket(socket))
  return Promise.all(reads)
}

async function factsOfSocket(file: string): Promise<FileFacts> {
  const found = await stat(file).catch(() => undefined)
  return { key: 'password.socket', file, mode: found?.mode ?? 0, isSocket: true }
}

/**
 * Returns a function that logs a line for each warning, and logs it again only if its reason changes. Calls run one after the other: two at
 * once would both log a new warning. The function never rejects, because a warning must not prevent a start or a reload.
 */
export function createConfigWarnings(
  log: Logger,
  onBug: (error: unknown) => void,
  configFile?: string,
): (config: Config) => Promise<void> {
  let before: readonly UnsafeSetting[] = []
  let last = Promise.resolve()

  async function logNew(config: Config): Promise<void> {
    const found = await configWarnings(config, configFile)
    for (const { meaning, message = `insecure: ${meaning}`, ...line } of found) {
      const isKnown = before.some(
        ({ key, file, reason }) => key === line.key && file === line.file && reason === line.reason,
      )
      if (!isKnown) log.warn(line, message)
    }
    before = found
  }

  return (config) => {
    last = last.then(() => logNew(config)).catch(onBug)
    return last
  }
}
