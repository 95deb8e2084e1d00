import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseUpstreamUrl } from '../../config/address.ts'
import { loadConfig } from '../../config/load.ts'
import { upstreamTarget } from '../../forward/settings.ts'
import { SetupError } from '../../system/setup-error.ts'
import { judgeDevice } from '../check/device-checks.ts'
import { type CheckResult, describeResult, runCheck } from '../check/finding.ts'
import type { Questions } from '../prompt.ts'

/** Where the device is, and the certificate to trust. `newPem` has to be written to `ca`. */
export interface DeviceAddress {
  readonly url: string
  readonly ca?: string | undefined
  readonly newPem?: string | undefined
}

/** The address of `--url` and the file of `--device-ca`. Throws `SetupError` if the address is none. */
export function addressFromFlags(url: string, ca: string | undefined): DeviceAddress {
  const parsed = parseUpstreamUrl(url)
  if ('problem' in parsed) throw new SetupError(`--url: ${parsed.problem}`)
  return { url, ca: ca === undefined ? undefined : resolve(ca) }
}

/** The result of a try, and the certificate (PEM) that the operator could trust to make it succeed: the one that it names. */
interface Tried {
  readonly result: CheckResult
  readonly certificate: string | undefined
}

/** Requests a page of the device. */
async function tryDevice({ url, ca, newPem }: DeviceAddress): Promise<Tried> {
  const { upstream } = loadConfig({ sets: [`upstream.url=${url}`, 'password.file=none'] })
  const trusted =
    newPem === undefined && ca !== undefined ? { ...upstream, tls: { ...upstream.tls, ca } } : upstream
  const target = async () => {
    const read = await upstreamTarget(trusted, 'upstream')
    return newPem === undefined ? read : { ...read, ca: newPem }
  }
  const { result, certificate } = await runCheck({
    name: 'device',
    key: '--url',
    meaning: 'clients would get an error for every request but those for tokens',
    remedy: 'correct the address',
    run: async () => judgeDevice(await target(), trusted, 'upstream'),
  })
  return { result, certificate: ca === undefined ? certificate : undefined }
}

/** Tries an address without a terminal. Throws `SetupError` unless the device answers as it should. */
export async function requireDevice(address: DeviceAddress, say: (text: string) => void): Promise<void> {
  const { result, certificate } = await tryDevice(address)
  say(describeResult(result))
  if (result.result === 'ok') return
  const trust = certificate === undefined ? '' : 'save its certificate and name it with --device-ca, '
  throw new SetupError('nothing is written, because of the device', {
    exitCode: 1,
    remedy: `${trust}correct --url, or write the configuration nevertheless with --skip-checks`,
  })
}

/**
 * Asks for the address, if there is none yet, and tries it, until the operator is content. A self-signed certificate can be
 * trusted: it is then stored in `folder`.
 */
export async function askForDevice(
  given: DeviceAddress | undefined,
  folder: string,
  questions: Questions,
): Promise<DeviceAddress> {
  const pem = join(folder, 'device.pem')
  let address = given
  for (;;) {
    address ??= { url: await askForAddress(questions), ca: given?.ca }
    questions.say(`Trying ${address.url} ...\n`)
    const { result, certificate } = await questions.during(tryDevice(address))
    questions.say(describeResult(result))
    if (result.result === 'ok') return address
    const isStored = existsSync(pem)
    const offer = certificate !== undefined && !isStored
    if (certificate !== undefined && isStored) {
      questions.say(`  ${pem} exists, so the certificate is not stored; name it with --device-ca\n`)
    }
    const trust = offer ? `t: trust this certificate (stored in ${pem}). ` : ''
    const answer = await questions.ask(
      `${trust}y: use the address anyway. n: enter another address. Or type it now [n]: `,
      'n',
    )
    if (/^y(?:es)?$/i.test(answer)) return address
    if (/^t$/i.test(answer)) {
      if (offer) address = { url: address.url, ca: pem, newPem: certificate }
      else questions.say('  There is no certificate to trust\n')
    } else {
      const url = /^no?$/i.test(answer) ? undefined : completed(answer, questions)
      address = url === undefined ? undefined : { url, ca: given?.ca }
    }
  }
}

async function askForAddress(questions: Questions): Promise<string> {
  for (;;) {
    const url = completed(await questions.ask('Address of the device, such as http://192.0.2.7: '), questions)
    if (url !== undefined) return url
  }
}

/** The address as a URL: without a scheme, http is meant. Says what is wrong with any other text. */
function completed(answer: string, questions: Questions): string | undefined {
  const url = /^[\w.[\]:-]+$/.test(answer) && !/^https?:/.test(answer) ? `http://${answer}` : answer
  const parsed = parseUpstreamUrl(url)
  if (!('problem' in parsed)) return url
  questions.say(`  ${parsed.problem}\n`)
  return undefined
}
