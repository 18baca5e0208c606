use super::HostCall;
use super::host_call::HostEffect;
use super::parsed_command::ParsedCommand;
use podbay_event::Capability;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::CallEffect;
use podbay_wire::CallNeed;
use podbay_wire::PathAccess;
use podbay_wire::protected_name;

/// One action to execute: in the sandbox, or on the host.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Box(Call),
    Host(HostCall),
}

impl Action {
    /// Returns whether it changes nothing, so that several may run concurrently and a denial blocks
    /// nothing.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Host(call) => !matches!(
                call.facts().effect,
                HostEffect::Sandbox | HostEffect::Agent | HostEffect::Host
            ),
            Self::Box(call) => call.facts().effect.is_read_only(),
        }
    }

    /// Returns whether it may run concurrently with others like it: questions to the user come one
    /// at a time, and changes of the session happen in order.
    pub fn runs_beside_others(&self) -> bool {
        match self {
            Self::Host(call) => call.facts().effect == HostEffect::Nothing,
            Self::Box(call) => call.facts().effect == CallEffect::Nothing,
        }
    }
}

/// Returns the capabilities that an action needs.
pub fn capabilities(action: &Action) -> Vec<Capability> {
    let mut needed = Needed::default();
    match action {
        Action::Host(call) => {
            let facts = call.facts();
            needed.add_all(facts.needs, action);
            if let HostCall::Foreign(call) = call
                && call.on_host
            {
                let server = call.server().to_owned();
                needed.add(Capability::UseHostServer { server });
            }
            if let HostCall::Foreign(call) = call
                && call.with_key
            {
                let server = call.server().to_owned();
                needed.add(Capability::UseServerWithKey { server });
            }
            if facts.effect == HostEffect::Host {
                needed.add(Capability::ChangeOutsideSandbox);
            }
        }
        Action::Box(call) => {
            let facts = call.facts();
            needed.add_all(facts.needs, action);
            let with = |read: bool| {
                facts.paths.iter().filter(move |named| match named.access {
                    PathAccess::WorkingDirectory | PathAccess::Names => false,
                    PathAccess::Reads | PathAccess::Tries => read,
                    PathAccess::Writes => !read,
                })
            };
            with(true).for_each(|named| needed.read(named.path));
            with(false).for_each(|named| needed.write(named.path));
        }
    }
    needed.0
}

/// Capabilities, each once, in the order in which they were found to be needed.
#[derive(Default)]
struct Needed(Vec<Capability>);

impl Needed {
    fn add(&mut self, capability: Capability) {
        if !self.0.contains(&capability) {
            self.0.push(capability);
        }
    }

    fn add_all(&mut self, needs: &[CallNeed], action: &Action) {
        for need in needs {
            match need {
                CallNeed::ReadFiles => self.add(Capability::ReadFiles),
                CallNeed::WriteFiles => self.add(Capability::WriteFiles),
                CallNeed::SessionGit => self.add(Capability::ChangeSessionGit),
                CallNeed::UpdateInstructions => self.add(Capability::UpdateInstructions),
                CallNeed::AddInstructions => self.add(Capability::AddInstructions),
                CallNeed::SaveMemory => self.add(Capability::SaveMemory),
                CallNeed::SpawnAgent => self.add(Capability::SpawnAgent),
                CallNeed::InstallDependencies => {
                    if let Action::Host(HostCall::Install(call)) = action {
                        let what = call.words.clone();
                        self.add(Capability::InstallDependencies { what });
                    }
                }
                CallNeed::RunInSandbox => self.add(Capability::RunInSandbox),
                CallNeed::Command => {
                    let reading = ParsedCommand::of(action);
                    let needed = reading.map_or_else(Vec::new, |reading| reading.capabilities());
                    for capability in needed {
                        self.add(capability);
                    }
                }
            }
        }
    }

    fn read(&mut self, path: &BytesPath) {
        self.add(Capability::ReadFiles);
        if let Some(protected) = protected_name(path).filter(|protected| protected.is_secret) {
            self.add(Capability::ProtectedName {
                name: protected.name,
            });
        }
    }

    fn write(&mut self, path: &BytesPath) {
        self.add(Capability::WriteFiles);
        if let Some(protected) = protected_name(path) {
            self.add(Capability::ProtectedName {
                name: protected.name,
            });
        }
    }
}
