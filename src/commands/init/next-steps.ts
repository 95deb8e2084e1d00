import { join } from 'node:path'

/** What `init` has made. */
export interface Made {
  readonly config: string
  readonly stateDir: string
  /** Every file that it wrote. */
  readonly files: readonly string[]
}

/** What to do after `init`: commands to copy. */
export function nextSteps({ config, stateDir, files }: Made): string {
  const flag = `--config ${quoted(config)}`
  const certificate = quoted(join(stateDir, 'tls', 'cert.pem'))
  return `
Written: ${files.join(', ')}

Next, try everything in it, and start Postern:
  postern check ${flag}
  postern serve ${flag}

Then, in another terminal, the first token. It asks for the device password and does not show it:
  (trap 'stty echo' EXIT; stty -echo; printf 'Password: ' >&2; IFS= read -r p; echo >&2; printf %s "$p") |
    curl -sS --cacert ${certificate} https://localhost:8443/oauth/token -d grant_type=password --data-urlencode password@-
`
}

/** A word of a shell command. */
function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
