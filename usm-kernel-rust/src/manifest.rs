//! The path of usm-kernel in the user's crate.

/// The path of usm-kernel in the user's crate: its own name, or its name inside the facade `usm`.
pub(crate) fn found_crate() -> String {
    // Inside usm-kernel and its tests the crate names itself.
    let manifest =
        std::env::var("CARGO_MANIFEST_DIR").map(|folder| std::path::PathBuf::from(folder).join("Cargo.toml"));
    let text =
        manifest.and_then(|file| std::fs::read_to_string(file).map_err(|_| std::env::VarError::NotPresent));
    let text = text.unwrap_or_default();
    dependency(&text).unwrap_or_else(|| "::usm_kernel".into())
}

/// Searches the dependencies of a manifest.
fn dependency(manifest: &str) -> Option<String> {
    let mut section = String::new();
    let mut facade = None;
    for line in manifest.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[') {
            section = head.trim_end_matches(']').to_string();
            // `[dependencies.name]`
            let name =
                section.rsplit_once("dependencies.").map(|(_, name)| name.trim_matches('"').to_string());
            if name.as_deref() == Some("usm-kernel") {
                return Some("::usm_kernel".into());
            }
            if name.as_deref() == Some("usm") {
                facade = Some("::usm::kernel".to_string());
            }
            continue;
        }
        if !section.ends_with("dependencies") {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().split('.').next().unwrap_or("").trim_matches('"');
        let is = |package: &str| {
            key == package || value.replace(' ', "").contains(&format!("package=\"{package}\""))
        };
        let crate_name = key.replace('-', "_");
        if is("usm-kernel") {
            return Some(format!("::{crate_name}"));
        }
        if is("usm") {
            facade = Some(format!("::{crate_name}::kernel"));
        }
    }
    facade
}

#[cfg(test)]
mod tests {
    use super::dependency;

    #[test]
    fn the_crate_is_found_by_any_name() {
        let found = |text: &str| dependency(text);
        assert_eq!(found("[dependencies]\nusm-kernel = \"0.1\"").as_deref(), Some("::usm_kernel"));
        assert_eq!(found("[dependencies]\nusm-kernel.workspace = true").as_deref(), Some("::usm_kernel"));
        assert_eq!(found("[dependencies.usm-kernel]\nversion = \"0.1\"").as_deref(), Some("::usm_kernel"));
        let renamed = "[dev-dependencies]\nkernels = { package = \"usm-kernel\", version = \"0.1\" }";
        assert_eq!(found(renamed).as_deref(), Some("::kernels"));
        assert_eq!(found("[dependencies]\nusm = \"0.1\"").as_deref(), Some("::usm::kernel"));
        assert_eq!(
            found("[dependencies]\nusm = \"0.1\"\nusm-kernel = \"0.1\"").as_deref(),
            Some("::usm_kernel")
        );
        assert_eq!(found("[package]\nname = \"usm-kernel\""), None);
    }
}
