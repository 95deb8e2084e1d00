import { checkedByDevice } from '../../config/password-fields.ts'
import type { Config } from '../../config/schema.ts'
import { isAmbiguousPath, pathOf } from '../../http/request-path.ts'
import { shellWord } from '../../system/text.ts'
import type { ListenerOrigin } from './listener-origin.ts'

/** The same request by curl, for a POSIX shell. `source`: a command that writes the field `Authorization`. */
export function curlCommand(source: string, { curl, origin }: ListenerOrigin, target: string): string {
  const words = [
    ...curl,
    ...(/[[\]{}]/.test(target) ? ['--globoff'] : []),
    ...(isAmbiguousPath(pathOf(target)) ? ['--path-as-is'] : []),
    ...['-H', '@-', `${origin}${target}`],
  ]
  return `${source} |\n  curl ${words.map(shellWord).join(' ')}`
}

/**
 * A shell command that writes the field `Authorization`, so that no token is on a command line. The token comes from the file that was named,
 * or from `postern issue`; where neither has one, from a variable.
 *
 * @param issue makes the command `postern issue` with these words
 */
export function tokenSource(
  tokenFile: string | undefined,
  config: Pick<Config, 'password' | 'passwords'>,
  issue: (words: string) => string,
): string {
  // Standard input has been read, and where the device checks passwords no token is issued.
  const isUnknown = tokenFile === '-' || (tokenFile === undefined && checkedByDevice(config))
  if (isUnknown) return `printf 'Authorization: Bearer %s' "$ACCESS_TOKEN"`
  const [first, ...others] = config.passwords ?? []
  const name = first === undefined ? '' : ` --name ${others.length === 0 ? first.name : 'NAME'}`
  const command = tokenFile === undefined ? issue(`--for 1h${name}`) : `cat ${shellWord(tokenFile)}`
  return `{ printf 'Authorization: Bearer '; ${command}; }`
}
