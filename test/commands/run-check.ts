import { runInProcess } from '../process/in-process.ts'
import { prepareSite, type Run } from '../process/serve.ts'

/** Runs `postern check` in front of a device, with these settings and behind them other words of the command line. */
export async function runCheck(
  url: string,
  set: readonly string[],
  ...words: readonly string[]
): Promise<Run> {
  const site = await prepareSite({ device: { url } })
  return runInProcess([
    'check',
    '--config',
    site.configFile,
    ...set.flatMap((each) => ['--set', each]),
    ...words,
  ])
}
