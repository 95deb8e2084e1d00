/** Where the program, its configuration and its state are, in place of the folders that unit and image name. */
export interface Places {
  readonly program: string
  readonly configuration: string
  readonly state: string
}

/**
 * The arguments of Node's in the `ExecStart` of a unit or a drop-in, up to the program, which is the last; `/usr/bin/env
 * node` comes before. Throws where something else is started.
 */
export function unitArguments(unit: string, places?: Places): string[] {
  const [, line] =
    /^ExecStart=\/usr\/bin\/env node (.*\/postern\.mjs) serve --config \S+$/m.exec(
      unit.replaceAll('\\\n', ' '),
    ) ?? []
  if (line === undefined) throw new Error('the unit starts something else')
  return relocated(line.split(/\s+/), places)
}

/** What a unit or a drop-in sets in the environment. */
export function unitEnvironment(unit: string): Record<string, string> {
  return Object.fromEntries(
    [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
  )
}

/** The same of the `ENTRYPOINT` of the image. */
export function imageArguments(dockerfile: string, places?: Places): string[] {
  const [, list] = /^ENTRYPOINT (\["node", .*\])$/m.exec(dockerfile.replaceAll('\\\n', ' ')) ?? []
  if (list === undefined) throw new Error('the image starts something else')
  const [, ...args] = JSON.parse(list) as string[]
  return relocated(args, places)
}

function relocated(args: readonly string[], places: Places | undefined): string[] {
  if (places === undefined) return [...args]
  return args.map((arg) =>
    arg
      .replace('/opt/postern', places.program)
      .replace('/etc/postern', places.configuration)
      .replace('/var/lib/postern', places.state),
  )
}
